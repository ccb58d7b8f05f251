// The Node that `npm run setup` brings into a clone of the repository. Only syntax that old versions of Node read.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../..", import.meta.url));
/** Milliseconds between two looks at the parent. */
const lookMs = 500;

/** Whether this package lies in a clone, and not among a user's installed ones. */
export const isInRepository = existsSync(join(repository, "scripts", "setup.mjs"));

/**
 * The newest supported one that is complete.
 * @param {(version: string) => boolean} isSupported
 * @returns {string | undefined} its path
 */
export function repositoryNode(isSupported) {
  const cache = join(repository, ".cache");
  if (!isInRepository || !existsSync(cache)) return undefined;
  const versions = readdirSync(cache)
    .filter((name) => /^node-\d+\.\d+\.\d+$/.test(name))
    .map((name) => name.slice("node-".length))
    .filter((version) => isSupported(version))
    .sort((one, other) => other.localeCompare(one, "en", { numeric: true }));
  return versions
    .map((version) => join(cache, `node-${version}`, "bin", "node"))
    .find((path) => existsSync(path));
}

/**
 * Runs this very command with another Node, and ends as it does.
 * @param {string} node
 */
export function runWith(node) {
  // First on the PATH too: agents and scripts that a command starts find the same one.
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`;
  const child = spawn(node, process.argv.slice(1), { stdio: "inherit", env: { ...process.env, PATH } });
  // Ctrl-C reaches the child too, which decides when to end. Signals sent only to this process are passed on.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  process.on("SIGHUP", () => child.kill("SIGHUP"));
  // npx passes no signal on. The child looks whether its parent is gone: this process.
  const parent = process.ppid;
  if (process.env.npm_command !== undefined || process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && process.exit(1), lookMs).unref();
  child.on("error", (error) => {
    process.stderr.write(`ambit: ${node} can't be started: ${error.message}\n`);
    process.exit(2);
  });
  child.on("close", (code, signal) => {
    if (signal === null) process.exit(code === null ? 1 : code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
