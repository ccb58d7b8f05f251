import { isDeepStrictEqual } from "node:util";
import type { SourceFile } from "./source-file.js";

/** Each package, even a private one, has a licence, supported versions of Node and entry points. */
export function incompleteManifests(manifests: readonly SourceFile[]): string[] {
  return manifests.flatMap(({ path, text }) => {
    const manifest = JSON.parse(text);
    return ["license", "engines", "exports"]
      .filter((field) => manifest[field] === undefined)
      .map((field) => `${path} has no "${field}"`);
  });
}

/**
 * The lockfile has the packages of every platform: `npm ci` refuses one without them. npm leaves out those of other
 * platforms where it makes a lockfile from an existing `node_modules`.
 */
export function missingPlatforms([lockfile]: readonly SourceFile[]): string[] {
  const packages: Record<string, { optionalDependencies?: object }> =
    JSON.parse(lockfile?.text ?? "{}").packages ?? {};
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !foldersAbove(path).some((folder) => `${folder}node_modules/${name}` in packages))
      .map((name) => `${lockfile?.path}: ${path} lacks ${name}`),
  );
}

/** Where Node looks for what the package at this path imports: its own folder first, the root last. */
function foldersAbove(path: string): readonly string[] {
  const parts = path === "" ? [] : path.split("/");
  return parts.map((_, at) => `${parts.slice(0, parts.length - at).join("/")}/`).concat("");
}

const kinds = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** The lockfile, the first file, has the same dependencies of each package as its manifest. */
export function lockfileDrift([lockfile, ...manifests]: readonly SourceFile[]): string[] {
  const { packages } = JSON.parse(lockfile?.text ?? "{}");
  return manifests.flatMap(({ path, text }) => {
    const manifest = JSON.parse(text);
    const locked = packages[path.replace(/\/?package\.json$/, "")] ?? {};
    return kinds
      .filter((kind) => !isDeepStrictEqual(manifest[kind] ?? {}, locked[kind] ?? {}))
      .map((kind) => `${path}: package-lock.json has other ${kind}: run "npm install" and commit it`);
  });
}
