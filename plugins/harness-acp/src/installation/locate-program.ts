import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RequiredPath } from "@ambit/core/plugin";
import type { Profile, ProgramSource } from "../profiles/profile.js";
import { findPackage, type PackageFolder, packageAround, withDependencies } from "./package-folders.js";

export interface LocatedProgram {
  /** The entry file, without links. */
  readonly file: string;
  /** Whether Node.js runs it. */
  readonly isScript: boolean;
  /** The program with the packages it needs. */
  readonly files: readonly RequiredPath[];
}

export interface LocateOptions {
  /** The deployer's own path of the program, in place of the package. */
  readonly command?: string | undefined;
  /** Where the deployer installs agents; looked into before this plugin's own `node_modules`. */
  readonly folder: string;
}

/** Finds an agent's program on disk, without running it. Undefined: it isn't installed. */
export function locateProgram(profile: Profile, options: LocateOptions): LocatedProgram | undefined {
  const entry = entryFile(profile.program, options);
  if (entry === undefined || !existsSync(entry)) return undefined;
  const file = realpathSync(entry);
  const program: RequiredPath = { path: file, what: profile.title };
  const folder = packageAround(file);
  const further = (profile.program.packages ?? []).map((name) => installed(name, options));
  if (!further.every((found) => found !== undefined)) return undefined;
  const files = [
    ...(folder === undefined ? [program] : packagePaths(folder, profile.title)),
    ...further.flatMap((found) => packagePaths(found, profile.title)),
    ...(profile.program.files ?? []),
  ];
  return { file, isScript: /\.[cm]?js$/.test(file), files };
}

/** How a deployer gets the program. */
export function installationFix(profile: Profile): string {
  return `npm install ${[profile.program.package, ...(profile.program.packages ?? [])].join(" ")}`;
}

function entryFile(program: ProgramSource, options: LocateOptions): string | undefined {
  if (options.command !== undefined) return options.command;
  if (program.entry !== undefined) return program.entry;
  const found = installed(program.package, options);
  return found === undefined ? undefined : binOf(found, program.bin);
}

/** In the deployer's folder, else beside this plugin. */
function installed(name: string, options: LocateOptions): PackageFolder | undefined {
  const own = fileURLToPath(new URL(".", import.meta.url));
  return findPackage(name, options.folder) ?? findPackage(name, own);
}

function binOf({ path, manifest }: PackageFolder, bin: string): string | undefined {
  const entry = typeof manifest.bin === "string" ? manifest.bin : manifest.bin?.[bin];
  return entry === undefined ? undefined : join(path, entry);
}

/** Links are shown as well as what they lead to: Node looks for a package at the link's place. */
function packagePaths(folder: PackageFolder, title: string): readonly RequiredPath[] {
  const paths = new Set<string>();
  for (const { path, realPath } of withDependencies(folder)) {
    paths.add(realPath);
    paths.add(path);
  }
  return [...paths].map((path) => ({ path, what: title }));
}
