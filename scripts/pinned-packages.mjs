/** npm packages that are installed apart from the repository's own: by a manifest and a lockfile of theirs. */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runLogged } from "./step.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifests = ["package.json", "package-lock.json"];

/**
 * Installs what a folder pins, checked against the hashes of its lockfile, without running a script of it. Rejects with npm's reason.
 * @param {string} pinned the folder of its manifest and lockfile.
 * @param {string} folder where it goes, complete or not at all.
 * @param {object} [options]
 * @param {"ci" | "install"} [options.command] of npm. `ci` refuses a lockfile that lacks packages of other platforms.
 * @param {(unfinished: string) => Promise<void>} [options.finish] what is left to do there. Default: nothing.
 */
export async function installPinned(pinned, folder, { command = "ci", finish = async () => {} } = {}) {
  const unfinished = `${folder}.${process.pid}`;
  try {
    mkdirSync(unfinished, { recursive: true });
    for (const name of manifests) copyFileSync(join(pinned, name), join(unfinished, name));
    const options = [
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--no-update-notifier",
      "--loglevel=error",
    ];
    await runLogged("npm", [command, ...options], unfinished);
    await finish(unfinished);
    // What is there now is incomplete.
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/**
 * The same, once, in `.cache`. Some of what only tests need lacks packages in every registry that its manifests name.
 * @param {string} pinned
 * @returns {Promise<string>} the folder of its `node_modules`
 */
export async function pinnedPackages(pinned) {
  const digest = createHash("sha256")
    .update(readFileSync(join(pinned, "package-lock.json")))
    .digest("hex");
  const folder = join(root, ".cache", `${basename(pinned)}-${digest.slice(0, 16)}`);
  if (!existsSync(folder)) await installPinned(pinned, folder, { command: "install" });
  return folder;
}
