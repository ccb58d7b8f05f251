/**
 * Runs a script on a supported Node. If the machine's is too old, a current one is installed from npm into `.cache`,
 * once, and the script runs again with it. Must itself run on any Node with ES modules.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPinned } from "./pinned-packages.mjs";
import { refusalOn } from "./platform.mjs";
import { runLogged, say, step } from "./step.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
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
 * @returns {Promise<string>} the folder of its programs. Rejects with the reason when they can't be installed.
 */
export async function installNode(which) {
  const pinned = join(root, "scripts", "node", which);
  const { optionalDependencies } = JSON.parse(readFileSync(join(pinned, "package.json"), "utf8"));
  const platform = `node-${process.platform}-${process.arch}`;
  const version = optionalDependencies[platform];
  if (version === undefined) throw new Error(`npm has no such Node for this platform (${platform})`);
  const folder = join(root, ".cache", `node-${version}`);
  // Only a complete folder has these links: they were made after the program had run.
  if (!existsSync(join(folder, "bin", "node")))
    await step(`Node ${version} from npm`, () => installInto(folder, pinned, platform));
  return join(folder, "bin");
}

/**
 * @param {string} folder
 * @param {string} pinned the folder of its manifest and lockfile.
 * @param {string} platform
 */
async function installInto(folder, pinned, platform) {
  const finish = async (/** @type {string} */ unfinished) => {
    await runLogged(join(unfinished, "node_modules", platform, "bin", "node"), ["--version"], unfinished);
    mkdirSync(join(unfinished, "bin"));
    linkPrograms(unfinished, platform);
  };
  await installPinned(pinned, folder, { finish });
}

/**
 * npm's own links can't be relied on: npm 9 removes the link to `node` along with the packages of other platforms.
 * @param {string} folder
 * @param {string} platform
 */
function linkPrograms(folder, platform) {
  const programs = { node: `${platform}/bin/node`, npm: "npm/bin/npm-cli.js", npx: "npm/bin/npx-cli.js" };
  for (const [name, program] of Object.entries(programs)) {
    const target = join("..", "node_modules", program);
    if (existsSync(join(folder, "bin", target))) symlinkSync(target, join(folder, "bin", name));
  }
}

/**
 * Calls `main` on a supported Node: here, or in a child process that runs the same script. Sets the exit code.
 * @param {() => number | Promise<number>} main resolves with the exit code.
 */
export async function onSupportedNode(main) {
  const refusal = refusalOn(process.platform);
  if (refusal !== undefined) {
    say(refusal);
    process.exitCode = 1;
    return;
  }
  const oldest = oldestSupported();
  if (isSupported(oldest)) {
    process.exitCode = await main();
    return;
  }
  let programs;
  try {
    programs = await installNode("current");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    say(
      `Node ${oldest} or newer is needed, this is ${process.versions.node}; install it from https://nodejs.org\n${reason}`,
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
      say(error.message);
      process.exitCode = 1;
      resolve(undefined);
    });
    child.on("close", (code) => {
      process.exitCode = code ?? 1;
      resolve(undefined);
    });
  });
}
