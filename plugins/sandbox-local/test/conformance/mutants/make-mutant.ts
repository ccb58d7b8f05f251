import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Lookup } from "@ambit/egress";
import type { LocalSandbox } from "@ambit/sandbox-local";

/** One mechanism removed from the built local sandbox: a piece of its code, and its replacement. */
export interface Patch {
  /** `plugin` is @ambit/sandbox-local; the others are the packages of that name that it uses. All as built. */
  readonly of: "plugin" | "core" | "backend-kit" | "egress";
  readonly file: string;
  /** Must occur exactly once: no test would catch a mutant that changes nothing. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly backend: LocalSandbox;
  /** For attacks that start a separate runner. */
  readonly module: URL;
}

const plugin = createRequire(import.meta.url).resolve("@ambit/sandbox-local");
const { resolve } = createRequire(plugin);
const built = {
  plugin: dirname(dirname(plugin)),
  core: dirname(dirname(resolve("@ambit/core"))),
  "backend-kit": dirname(dirname(resolve("@ambit/backend-kit"))),
  egress: dirname(dirname(resolve("@ambit/egress"))),
};
/**
 * Inside this package, so that the copies find their imports, and where vitest doesn't transform them. Each test file has
 * one of its own, which it removes.
 */
const workshop = fileURLToPath(
  new URL(`../../../node_modules/.mutants-${randomBytes(4).toString("hex")}/`, import.meta.url),
);

/**
 * A copy of the built plugin with some of it changed. A copy, so that the product has no switch that weakens it. Of the
 * packages that it uses, those without a change are the built ones: they are loaded once for all mutants.
 */
export async function makeMutant(name: string, patches: readonly Patch[], lookup: Lookup): Promise<Mutant> {
  const folder = join(workshop, name);
  rmSync(folder, { recursive: true, force: true });
  const folders = {
    plugin: folder,
    core: join(folder, "node_modules", "@ambit", "core"),
    "backend-kit": join(folder, "node_modules", "@ambit", "backend-kit"),
    egress: join(folder, "node_modules", "@ambit", "egress"),
  };
  copyPackage(built.plugin, folders.plugin, ["dist", "native"]);
  mkdirSync(dirname(folders.core), { recursive: true });
  // All of them use core.
  const isPatched = (name: Patch["of"]) => patches.some((patch) => patch.of === name || patch.of === "core");
  for (const name of ["core", "backend-kit", "egress"] as const) {
    if (isPatched(name)) copyPackage(built[name], folders[name], ["dist", "inside"]);
    else symlinkSync(built[name], folders[name]);
  }
  for (const patch of patches) apply(patch, folders[patch.of]);
  const module = join(folder, "backend.mjs");
  writeFileSync(module, factory);
  const url = pathToFileURL(module);
  const { default: make }: { default: (lookup?: Lookup) => LocalSandbox } = await import(url.href);
  return { backend: make(lookup), module: url };
}

/** A copy of the built egress package alone with some of it changed. @returns its folder. */
export function makeEgressMutant(name: string, patch: Patch): URL {
  const folder = join(workshop, name, "node_modules", "@ambit", "egress");
  rmSync(join(workshop, name), { recursive: true, force: true });
  copyPackage(built.egress, folder, ["dist"]);
  symlinkSync(built.core, join(dirname(folder), "core"));
  apply(patch, folder);
  return pathToFileURL(`${folder}/`);
}

function copyPackage(from: string, to: string, folders: readonly string[]): void {
  mkdirSync(to, { recursive: true });
  for (const name of ["package.json", ...folders]) {
    if (existsSync(join(from, name)))
      cpSync(join(from, name), join(to, name), { recursive: true, filter: isRun });
  }
  // Its dependencies in versions of its own; the others are found further up.
  const own = join(from, "node_modules");
  if (!existsSync(own)) return;
  mkdirSync(join(to, "node_modules"), { recursive: true });
  for (const name of ["ipaddr.js"]) {
    if (existsSync(join(own, name))) symlinkSync(join(own, name), join(to, "node_modules", name));
  }
}

/** Not types and source maps, which are most of a package. */
const isRun = (path: string) => !/\.(ts|map|tsbuildinfo)$/.test(path);

function apply({ file, find, replace }: Patch, folder: string): void {
  const path = join(folder, "dist", file);
  writeFileSync(
    path,
    textWith(path, find).replace(find, () => replace),
  );
}

/** @throws Error if the code of a patch isn't there, as built */
export function requireFit({ of, file, find }: Patch): void {
  textWith(join(built[of], "dist", file), find);
}

function textWith(path: string, find: string): string {
  const text = readFileSync(path, "utf8");
  const count = text.split(find).length - 1;
  if (count !== 1)
    throw new Error(`${path} has ${count} times: ${find}: the mutant must follow the code it changes`);
  return text;
}

const factory = `
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configSchema, LocalSandbox } from "./dist/index.js";
const dataFolder = process.env.AMBIT_KIT_MUTANT_FOLDER ?? mkdtempSync(join(tmpdir(), "ambit-kit-mutant-"));
chmodSync(dataFolder, 0o755);
const trustedAuthorities = [process.env.AMBIT_KIT_MUTANT_AUTHORITY].filter((path) => path !== undefined);
export default (lookup) => new LocalSandbox(configSchema.parse({ dataFolder, trustedAuthorities }), lookup);
`;

export function removeMutants(): void {
  rmSync(workshop, { recursive: true, force: true });
}
