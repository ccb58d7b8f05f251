import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, parse } from "node:path";
import { z } from "zod";

const manifestSchema = z.looseObject({
  name: z.string().optional(),
  version: z.string().optional(),
  /** Of Claude Code, in the package that brings it under a version of its own. */
  claudeCodeVersion: z.string().optional(),
  bin: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
  optionalDependencies: z.record(z.string(), z.string()).optional(),
  peerDependencies: z.record(z.string(), z.string()).optional(),
});
export type PackageManifest = z.infer<typeof manifestSchema>;

export interface PackageFolder {
  /** As it was found: inside a `node_modules`, possibly a link. */
  readonly path: string;
  /** With all links resolved. */
  readonly realPath: string;
  readonly manifest: PackageManifest;
}

/**
 * The package as Node would find it from a file in `from`: the nearest `node_modules` above it that has it.
 * Read from disk, since `exports` may hide a package's own manifest from `require.resolve`.
 */
export function findPackage(name: string, from: string): PackageFolder | undefined {
  for (const folder of withParents(from)) {
    const path = join(folder, "node_modules", name);
    const found = readPackage(path);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The package that a file belongs to. */
export function packageAround(file: string): PackageFolder | undefined {
  for (const folder of withParents(dirname(file))) {
    const found = readPackage(folder);
    // A manifest without a name only sets the module type (`{"type":"module"}`).
    if (found?.manifest.name !== undefined) return found;
  }
  return undefined;
}

/** The package and its installed dependencies, each folder once. */
export function withDependencies(root: PackageFolder): readonly PackageFolder[] {
  const found = new Map<string, PackageFolder>([[root.path, root]]);
  const open = [root];
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    const { dependencies, optionalDependencies, peerDependencies } = current.manifest;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const needed = findPackage(name, current.realPath);
      if (needed === undefined || found.has(needed.path)) continue;
      found.set(needed.path, needed);
      open.push(needed);
    }
  }
  return [...found.values()];
}

function readPackage(path: string): PackageFolder | undefined {
  const file = join(path, "package.json");
  if (!existsSync(file)) return undefined;
  const manifest = manifestSchema.safeParse(JSON.parse(readFileSync(file, "utf8")));
  return manifest.success ? { path, realPath: realpathSync(path), manifest: manifest.data } : undefined;
}

function withParents(folder: string): readonly string[] {
  const folders = [folder];
  for (let current = folder; current !== parse(current).root; ) {
    current = dirname(current);
    folders.push(current);
  }
  return folders;
}
