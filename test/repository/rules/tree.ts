import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { globbySync } from "globby";
import type { SourceFile } from "./source-file.js";

export const root = fileURLToPath(new URL("../../..", import.meta.url));

/** All files that git doesn't ignore, except binary ones. */
export function readTree(): SourceFile[] {
  return globbySync("**", { cwd: root, dot: true, gitignore: true, ignore: [".git"] })
    .map(readText)
    .filter(({ text }) => !text.includes("\0"));
}

/** Paths of links that git doesn't ignore. Each points to a place of the machine where it was made. */
export function symbolicLinks(): string[] {
  const options = { cwd: root, dot: true, gitignore: true, ignore: [".git"], followSymbolicLinks: false };
  return globbySync("**", { ...options, onlyFiles: false, objectMode: true })
    .filter(({ dirent }) => dirent.isSymbolicLink())
    .map(({ path }) => path);
}

export function readText(path: string): SourceFile {
  return { path, text: readFileSync(`${root}/${path}`, "utf8") };
}

/** The manifests of all packages, without the root's. */
export function readManifests(): SourceFile[] {
  const { workspaces }: { workspaces: string[] } = JSON.parse(readText("package.json").text);
  const manifests = workspaces.map((folder) => `${folder}/package.json`);
  return globbySync(manifests, { cwd: root }).map(readText);
}

export const isCode = ({ path }: SourceFile) => /\.(ts|tsx|mts|mjs|js)$/.test(path);
