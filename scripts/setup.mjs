/**
 * Makes a fresh clone ready to run: system packages, npm packages, build. Plain Node without dependencies, because it
 * runs before any are installed. Silent if there is nothing to do.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onSupportedNode } from "./supported-node.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** Searched only where a jail can see them too: a copy in a home would be useless inside. */
const systemFolders = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/** Debian's package names, the program in each, and what needs it. */
const systemPackages = [
  { name: "bubblewrap", brings: "bwrap", reason: "the local sandbox builds its jail with it" },
  { name: "socat", brings: "socat", reason: "carries a jail's only channel out, a unix socket" },
  { name: "python3", brings: "python3", reason: "code tools may be written in Python" },
  {
    name: "ca-certificates",
    brings: "/etc/ssl/certs/ca-certificates.crt",
    reason: "TLS from inside a sandbox",
  },
  { name: "iproute2", brings: "ip", reason: "the loopback Daytona of the tests links its sandboxes with it" },
  {
    name: "nftables",
    brings: "nft",
    reason: "the loopback Daytona of the tests limits their networks with it",
  },
  { name: "procps", brings: "pgrep", reason: "tests look for processes inside a sandbox" },
  {
    name: "postgresql",
    brings: "pg_createcluster",
    reason: "tests of the store and of replicas start a server of their own",
  },
  { name: "curl", brings: "curl", reason: "the README's examples, and attacks on a network boundary" },
];

/** @param {string} message */
const say = (message) => process.stderr.write(`setup: ${message}\n`);

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} [folder]
 */
async function run(command, args, folder = root) {
  const failed = `"${[command, ...args].join(" ")}" failed`;
  // Installation output is progress, not a result: it belongs on stderr.
  const child = spawn(command, args, { cwd: folder, stdio: ["ignore", 2, 2] });
  const [status] = await once(child, "close").catch((cause) => {
    throw new Error(`${failed}: ${cause.message}`, { cause });
  });
  if (status !== 0) throw new Error(`${failed}: exit ${status}`);
}

/** The prefix that runs a command as root, or undefined if that needs a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  return spawnSync("sudo", ["-n", "true"]).status === 0 ? ["sudo", "-n"] : undefined;
}

/** The system packages that the repository needs. Reports what is missing if it can't be installed. */
export async function installSystemPackages() {
  const missing = systemPackages.filter(({ brings }) => {
    const places = brings.startsWith("/") ? [brings] : systemFolders.map((folder) => join(folder, brings));
    return !places.some((place) => existsSync(place));
  });
  if (missing.length === 0) return;

  for (const { name, reason } of missing) say(`${name} is missing (${reason})`);
  const names = missing.map(({ name }) => name);
  if (await aptInstall(names)) return;
  say(`they can't be installed from here; what needs them is skipped, and says so. To install them:`);
  say(`  sudo apt-get install ${names.join(" ")}   (or your system's packages of these names)`);
}

/**
 * False if that isn't possible. In CI a failure throws instead: a skip there must not look like a proof.
 * @param {readonly string[]} names
 */
async function aptInstall(names) {
  const prefix = existsSync("/usr/bin/apt-get") ? rootPrefix() : undefined;
  if (prefix === undefined) return false;
  const [command = "", ...args] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
  const waitForLock = ["-o", "DPkg::Lock::Timeout=120"];
  try {
    await run(command, [...args, ...waitForLock, "update"]);
    await run(command, [...args, ...waitForLock, "install", "--yes", "--no-install-recommends", ...names]);
    return true;
  } catch (error) {
    if (process.env.CI) throw error;
    say(error instanceof Error ? error.message : String(error));
    return false;
  }
}

/** MCP's conformance suite needs its own overrides, which npm reads only from a root manifest. */
const npmFolders = [root, join(root, "plugins/mcp-http/conformance")];

/** @param {string} folder */
async function installNpmPackages(folder) {
  // npm writes this file last, so its age reveals both an interrupted and an outdated install.
  const installed = statSync(join(folder, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs >= statSync(join(folder, "package-lock.json")).mtimeMs) return;
  say("installing npm packages");
  // Not "npm ci", which requires entries for the native binaries of every other platform; npm leaves them out of a
  // lockfile if the registry doesn't have them. The lockfile is installed as it is, it isn't written, and
  // test/repository fails if it doesn't match a package.json. The log level is for a run within "npm --silent", whose
  // errors would be lost.
  await run("npm", ["install", "--no-save", "--ignore-scripts", "--loglevel=error"], folder);
}

/** Everything that npm installs. Throws with the failed command. */
export async function installPackages() {
  await all(npmFolders.map(installNpmPackages));
}

/**
 * Waits for all steps, so that nothing is still being installed when the first failure is thrown.
 * @param {readonly Promise<void>[]} steps
 */
export async function all(steps) {
  for (const step of await Promise.allSettled(steps)) if (step.status === "rejected") throw step.reason;
}

/** Installs and builds. Returns false with a message if that failed: the user can fix it, a stack wouldn't help. */
export async function setUp() {
  try {
    // Both wait for the network most of the time.
    await all([installSystemPackages(), installPackages()]);
    await run("npm", ["run", "--silent", "build"]);
    return true;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await onSupportedNode(async () => ((await setUp()) ? 0 : 1));
