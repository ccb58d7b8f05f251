import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** A piece of the bridge's built code, and its replacement. */
export interface Patch {
  /** Below its `dist`. */
  readonly file: string;
  /** Must occur exactly once: no test would catch a mutant that changes nothing. */
  readonly find: string;
  readonly replace: string;
}

const plugin = fileURLToPath(new URL("../../", import.meta.url));
const bridge = dirname(dirname(createRequire(import.meta.url).resolve("@ambit/bridge")));
/** Inside this package, so that the copies find their imports, and where vitest doesn't transform them. */
const workshop = join(plugin, "node_modules", `.mutants-${randomBytes(4).toString("hex")}`);

/** A copy of the built plugin with a changed bridge. A copy, so that the product has no switch that weakens it. */
export async function withChangedBridge(
  name: string,
  patches: readonly Patch[],
): Promise<typeof import("../../dist/backend.js")> {
  const folder = join(workshop, name.replaceAll(" ", "-"));
  const ownBridge = join(folder, "node_modules", "@ambit", "bridge");
  copyPackage(plugin, folder, ["dist"]);
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
  return await import(pathToFileURL(join(folder, "dist", "backend.js")).href);
}

export function removeChangedBridges(): void {
  rmSync(workshop, { recursive: true, force: true });
}

function copyPackage(from: string, to: string, folders: readonly string[]): void {
  mkdirSync(to, { recursive: true });
  const filter = (path: string) => !/\.(ts|map|tsbuildinfo)$/.test(path);
  for (const name of ["package.json", ...folders])
    cpSync(join(from, name), join(to, name), { recursive: true, filter });
}
