/**
 * `node scripts/packages/install-packages.mjs <folder>`: packs every published package, and installs all of them together into a
 * folder, like a registry's users: without development dependencies. Needs a build.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { pack, publishable } from "./publishable.mjs";

/**
 * @param {readonly string[]} archives of packages.
 * @param {string} folder outside the repository, whose own modules must not be found.
 */
export function installArchives(archives, folder) {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  execFileSync("npm", ["install", ...quiet, ...archives], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
}

/**
 * Copies an installation without the files that only its author reads.
 * @param {string} from
 * @param {string} to
 */
export function copyInstallation(from, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const isNeeded = (/** @type {string} */ path) => !/\.(tgz|d\.ts|map|tsbuildinfo)$/.test(path);
  cpSync(join(from, "node_modules"), join(to, "node_modules"), {
    recursive: true,
    verbatimSymlinks: true,
    filter: isNeeded,
  });
  writeFileSync(join(to, "package.json"), JSON.stringify({ private: true }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target] = process.argv.slice(2);
  if (target === undefined)
    throw new Error("name the folder: node scripts/packages/install-packages.mjs <folder>");
  const folder = mkdtempSync(join(tmpdir(), "ambit-packages-"));
  try {
    installArchives(pack(publishable(), folder), folder);
    copyInstallation(folder, resolve(target));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
