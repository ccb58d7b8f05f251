import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** A piece of the bridge's built code, and its replacement. */
export interface Patch {
  /** Below its `dist`. */
  readonly file: string;
  /** Must occur exactly once: no test would catch a mutant that changes nothing. */
  readonly find: string;
  readonly replace: string;
}

/** Inside the plugin's package, so that the copies find their imports, and where vitest doesn't transform them. */
const workshopIn = (plugin: string) => join(plugin, "node_modules", workshop);
const workshop = `.mutants-${randomBytes(4).toString("hex")}`;

/**
 * Copies a built plugin with a changed bridge. A copy, so that the product has no switch that weakens it.
 *
 * @param plugin the folder of its package. @param folders of that package.
 * @returns the URL of the copy's `dist/backend.js`.
 */
export function withChangedBridge(
  plugin: string,
  folders: readonly string[],
  name: string,
  patches: readonly Patch[],
): string {
  const folder = join(workshopIn(plugin), name.replaceAll(" ", "-"));
  const bridge = dirname(dirname(createRequire(join(plugin, "package.json")).resolve("@ambit/bridge")));
  const ownBridge = join(folder, "node_modules", "@ambit", "bridge");
  copyPackage(plugin, folder, folders);
  copyPackage(bridge, ownBridge, ["dist"]);
  for (const { file, find, replace } of patches) {
    const path = join(ownBridge, "dist", file);
    const text = readFileSync(path, "utf8");
    const found = text.split(find).length - 1;
    if (found !== 1)
      throw new Error(`${file} has ${found} times: ${find}: the mutant must follow the code it changes`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return pathToFileURL(join(folder, "dist", "backend.js")).href;
}

export function removeChangedBridges(plugin: string): void {
  rmSync(workshopIn(plugin), { recursive: true, force: true });
}

function copyPackage(from: string, to: string, folders: readonly string[]): void {
  mkdirSync(to, { recursive: true });
  const filter = (path: string) => !/\.(ts|map|tsbuildinfo)$/.test(path);
  for (const name of ["package.json", ...folders])
    cpSync(join(from, name), join(to, name), { recursive: true, filter });
}
