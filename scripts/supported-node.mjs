/**
 * Runs a script on a supported Node. If the machine's is too old, a current one is installed from npm into `.cache`,
 * once, and the script runs again with it. Must itself run on any Node with ES modules.
 */
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifests = ["package.json", "package-lock.json"];

/** The oldest supported version, as the workspace's `engines` states it. */
function oldestSupported() {
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return engines.node.replace(/[^\d.]/g, "");
}

/** @param {string} oldest */
function isSupported(oldest) {
  return process.versions.node.localeCompare(oldest, "en", { numeric: true }) >= 0;
}

/**
 * Installs what a folder of `scripts/node` pins, checked against the hashes of its lockfile.
 * @param {"current" | "oldest"} which
 * @returns the folder of its programs. Throws with the reason when they can't be installed.
 */
export function installNode(which) {
  const pinned = join(root, "scripts", "node", which);
  const { optionalDependencies } = JSON.parse(readFileSync(join(pinned, "package.json"), "utf8"));
  const platform = `node-${process.platform}-${process.arch}`;
  const version = optionalDependencies[platform];
  if (version === undefined) throw new Error(`npm has no such Node for this platform (${platform})`);
  const folder = join(root, ".cache", `node-${version}`);
  const programs = join(folder, "node_modules", ".bin");
  if (existsSync(folder)) return programs;

  process.stderr.write(`setup: installing Node ${version} from npm\n`);
  // Built separately and renamed, so that an interrupted install isn't mistaken for a complete one.
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  for (const name of manifests) copyFileSync(join(pinned, name), join(unfinished, name));
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
  const { status } = spawnSync("npm", ["ci", ...options], { cwd: unfinished, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error("npm could not install it");
  }
  if (!existsSync(folder)) renameSync(unfinished, folder);
  return programs;
}

/**
 * Calls `main` on a supported Node: here, or in a child process that runs the same script. Sets the exit code.
 * @param {() => number | Promise<number>} main resolves with the exit code.
 */
export async function onSupportedNode(main) {
  const oldest = oldestSupported();
  if (isSupported(oldest)) {
    process.exitCode = await main();
    return;
  }
  let programs;
  try {
    programs = installNode("current");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      `setup: Node ${oldest} or newer is needed, this is ${process.versions.node}; ${reason}. Install it from https://nodejs.org\n`,
    );
    process.exitCode = 1;
    return;
  }
  // Without the running Node's own folder in front, "node" and "npm" are the new ones in every child.
  const path = `${programs}${delimiter}${process.env.PATH}`;
  const child = spawn(join(programs, "node"), process.argv.slice(1), {
    stdio: "inherit",
    env: { ...process.env, PATH: path },
  });
  // Ctrl-C reaches the child too, which decides when to end. Signals sent only to this process are passed on.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  await new Promise((resolve) => {
    child.on("error", (error) => {
      process.stderr.write(`setup: ${error.message}\n`);
      process.exitCode = 1;
      resolve(undefined);
    });
    child.on("close", (code) => {
      process.exitCode = code ?? 1;
      resolve(undefined);
    });
  });
}
