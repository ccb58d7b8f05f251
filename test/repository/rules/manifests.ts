import { isDeepStrictEqual } from "node:util";
import type { SourceFile } from "./source-file.js";

/** Each package says under which terms, on which Node and by which doors it is used; private ones too. */
export function incompleteManifests(manifests: readonly SourceFile[]): string[] {
  return manifests.flatMap(({ path, text }) => {
    const manifest = JSON.parse(text);
    return ["license", "engines", "exports"]
      .filter((field) => manifest[field] === undefined)
      .map((field) => `${path} has no "${field}"`);
  });
}

const kinds = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** The lockfile, which comes first, knows each package's dependencies as its manifest states them. */
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
