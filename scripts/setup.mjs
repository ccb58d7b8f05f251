/**
 * Makes a fresh clone ready to run: system packages, npm packages, build. Plain Node without dependencies, because it
 * runs before any are installed.
 *
 * @typedef {"demo" | "console" | "everything"} Extent what it gets ready: what `npx ambit` needs, that with the console, or all
 *   packages and their tests.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { clusterFolder, clusterPackages } from "./cluster.mjs";
import { missingLines } from "./platform.mjs";
import { runLogged, say, step } from "./step.mjs";
import { onSupportedNode } from "./supported-node.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** Searched only where a jail can see them too: a copy in a home would be useless inside. */
const systemFolders = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/** Debian's package names, the program in each, and what needs it. */
const systemPackages = [
  { name: "bubblewrap", brings: "bwrap", reason: "the local sandbox builds its jail with it" },
  { name: "python3", brings: "python3", reason: "code tools may be written in Python" },
  {
    name: "ca-certificates",
    brings: "/etc/ssl/certs/ca-certificates.crt",
    reason: "TLS from inside a sandbox",
  },
];

/** What only the tests need. */
const testPackages = [
  { name: "iproute2", brings: "ip", reason: "the loopback Daytona of the tests links its sandboxes with it" },
  {
    name: "nftables",
    brings: "nft",
    reason: "the loopback Daytona of the tests limits their networks with it",
  },
  { name: "socat", brings: "socat", reason: "tests listen and connect inside a sandbox with it" },
  { name: "git", brings: "git", reason: "tests fetch and push with it" },
  { name: "git-lfs", brings: "git-lfs", reason: "tests fetch what a repository keeps outside of it" },
  { name: "openssh-client", brings: "ssh-keygen", reason: "tests verify the signatures of commits" },
  { name: "procps", brings: "pgrep", reason: "tests look for processes inside a sandbox" },
  {
    name: "postgresql",
    brings: "pg_createcluster",
    reason: "tests of the store and of replicas start a server of their own",
  },
  { name: "curl", brings: "curl", reason: "the README's examples, and attacks on a network boundary" },
];

/** The prefix that runs a command as root, or undefined if that needs a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  return spawnSync("sudo", ["-n", "true"]).status === 0 ? ["sudo", "-n"] : undefined;
}

/**
 * Reports what is missing if it can't be installed.
 * @param {Extent} extent
 */
export async function installSystemPackages(extent) {
  const cluster = clusterFolder() === undefined ? [] : clusterPackages;
  const wanted = extent === "everything" ? [...systemPackages, ...testPackages, ...cluster] : systemPackages;
  const missing = wanted.filter(({ brings }) => {
    const places = brings.startsWith("/") ? [brings] : systemFolders.map((folder) => join(folder, brings));
    return !places.some((place) => existsSync(place));
  });
  if (missing.length === 0) return;

  const names = [...new Set(missing.map(({ name }) => name))];
  if (await aptInstall(names)) return;
  for (const line of missingLines(process.platform, missing)) say(line);
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
  const install = ["install", "--yes", "--no-install-recommends", ...names];
  try {
    await step(`system packages: ${names.join(", ")}`, async () => {
      await runLogged(command, [...args, ...waitForLock, "update"], root);
      await runLogged(command, [...args, ...waitForLock, ...install], root);
    });
    return true;
  } catch (error) {
    if (process.env.CI) throw error;
    say(error instanceof Error ? error.message : String(error));
    return false;
  }
}

/**
 * What npm installs for each extent: for the demo, the command line with its plugins, the demo agent and the compiler; for the
 * console, also what its page is made of and built with.
 * MCP's conformance suite needs its own overrides, which npm reads only from a root manifest.
 * @type {Record<Extent, readonly { folder: string, workspaces: readonly string[] }[]>}
 */
const npmInstalls = {
  demo: [{ folder: root, workspaces: ["server", "agents/demo", "scripts/build"] }],
  console: [{ folder: root, workspaces: ["server", "agents/demo", "scripts/build", "console"] }],
  everything: [
    { folder: root, workspaces: [] },
    { folder: join(root, "test/fakes/mcp-conformance"), workspaces: [] },
  ],
};

/**
 * Everything that npm installs. Throws with the failed command.
 * @param {Extent} extent
 */
export async function installPackages(extent) {
  const outdated = npmInstalls[extent].filter(({ folder }) => !isInstalled(folder, extent));
  if (outdated.length === 0) return;
  const widest = widestExtent(extent, existsSync(join(root, "node_modules/.bin/vitest")));
  await step("npm packages", () =>
    all(outdated.map(({ folder, workspaces }) => installInto(folder, workspaces, widest))),
  );
}

/**
 * What the demo installs where all packages are: npm would remove those that only the tests need. Pure.
 * @param {Extent} extent
 * @param {boolean} hasEverything
 * @returns {Extent}
 */
export const widestExtent = (extent, hasEverything) => (hasEverything ? "everything" : extent);

/**
 * Arguments of npm that install the extent. Pure.
 * @param {Extent} extent
 * @param {readonly string[]} workspaces those of the demo
 * @returns {readonly string[]}
 */
export function npmArguments(extent, workspaces) {
  // Not "npm ci", which removes what is installed already. The lockfile is installed as it is, it isn't written, and
  // test/repository fails if it doesn't match a package.json. The log level is for a run within "npm --silent", whose
  // errors would be lost.
  const options = ["install", "--no-save", "--ignore-scripts", "--loglevel=error"];
  if (extent === "everything") return options;
  return [...options, ...workspaces.flatMap((workspace) => ["--workspace", workspace]), "--omit=dev"];
}

/**
 * Which extent was installed, from which lockfile; or that an install hasn't ended.
 * @param {string} folder
 */
const markerIn = (folder) => join(folder, "node_modules", ".ambit-installed");

/**
 * @param {string} folder
 * @param {Extent} extent
 */
const stateOf = (folder, extent) =>
  `${extent} ${createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex")}`;

/**
 * @param {string} folder
 * @param {Extent} extent
 */
function isInstalled(folder, extent) {
  if (!existsSync(markerIn(folder))) return isInstalledByHand(folder);
  const installed = readFileSync(markerIn(folder), "utf8");
  return installed === stateOf(folder, extent) || installed === stateOf(folder, "everything");
}

/**
 * By `npm install`, which writes this file last.
 * @param {string} folder
 */
function isInstalledByHand(folder) {
  const installed = statSync(join(folder, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  return installed !== undefined && installed.mtimeMs >= statSync(join(folder, "package-lock.json")).mtimeMs;
}

/**
 * @param {string} folder
 * @param {readonly string[]} workspaces all if empty.
 * @param {Extent} extent
 */
async function installInto(folder, workspaces, extent) {
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  writeFileSync(markerIn(folder), "unfinished");
  await runLogged("npm", npmArguments(extent, workspaces), folder);
  writeFileSync(markerIn(folder), stateOf(folder, extent));
}

/**
 * Waits for all steps, so that nothing is still being installed when the first failure is thrown.
 * @param {readonly Promise<void>[]} steps
 */
export async function all(steps) {
  for (const one of await Promise.allSettled(steps)) if (one.status === "rejected") throw one.reason;
}

/**
 * Installs and builds. Returns false with a message if that failed: the user can fix it, a stack wouldn't help.
 * @param {Extent} extent
 */
export async function setUp(extent) {
  try {
    // Both wait for the network most of the time.
    await all([installSystemPackages(extent), installPackages(extent)]);
    const script = extent === "everything" ? "build" : "build:demo";
    await step("build", () => runLogged("npm", ["run", "--silent", script], root));
    if (extent === "console")
      await step("console", () => runLogged("npm", ["run", "--silent", "build:page", "-w", "console"], root));
    return true;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await onSupportedNode(async () => {
    if (!(await setUp("everything"))) return 1;
    // The command finds the Node that was brought here by itself.
    say("ready. Next: npx ambit doctor   what this host guarantees");
    say("             npm run demo       an agent in a sandbox, with its tools");
    return 0;
  });
