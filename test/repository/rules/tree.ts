import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { globbySync } from "globby";
import type { SourceFile } from "./source-file.js";

export const root = fileURLToPath(new URL("../../..", import.meta.url));

/** All that is or could be committed: everything git doesn't ignore. Files that aren't text are left out. */
export function readTree(): SourceFile[] {
  return globbySync("**", { cwd: root, dot: true, gitignore: true, ignore: [".git"] })
    .map(readText)
    .filter(({ text }) => !text.includes("\0"));
}

export function readText(path: string): SourceFile {
  return { path, text: readFileSync(`${root}/${path}`, "utf8") };
}

/** Of every package, the root's left out. */
export function readManifests(): SourceFile[] {
  const { workspaces }: { workspaces: string[] } = JSON.parse(readText("package.json").text);
  const manifests = workspaces.map((folder) => `${folder}/package.json`);
  return globbySync(manifests, { cwd: root }).map(readText);
}

export const isCode = ({ path }: SourceFile) => /\.(ts|mts|mjs|js)$/.test(path);
