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
