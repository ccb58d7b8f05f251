import { closeSync, fstatSync, readSync } from "node:fs";
import ignore, { type Ignore } from "ignore";
import { type Folder, openFile } from "./folder.js";

/** Bytes of one `.gitignore`; a larger one isn't read. */
const maxBytes = 1_048_576;

/** The rules of one `.gitignore`, for paths below its folder. */
export interface IgnoreRules {
  /** The folder's path, with a slash at its end; empty for the workspace. */
  readonly below: string;
  readonly rules: Ignore;
}

/** The rules that hold in a folder: those of the folders above it, and its own. */
export function rulesIn(folder: Folder, path: string, above: readonly IgnoreRules[]): readonly IgnoreRules[] {
  const text = readRules(folder);
  if (text === undefined) return above;
  return [...above, { below: path === "" ? "" : `${path}/`, rules: ignore().add(text) }];
}

/** As git decides: the last rule of the deepest file that matches. @param path with a slash at the end of a folder's. */
export function isIgnored(path: string, rules: readonly IgnoreRules[]): boolean {
  for (let index = rules.length - 1; index >= 0; index -= 1) {
    const one = rules[index];
    if (one === undefined) continue;
    const { ignored, unignored } = one.rules.test(path.slice(one.below.length));
    if (ignored || unignored) return ignored;
  }
  return false;
}

function readRules(folder: Folder): string | undefined {
  let fd: number;
  try {
    fd = openFile(folder, Buffer.from(".gitignore"));
  } catch {
    return undefined;
  }
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile() || size > maxBytes) return undefined;
    const content = Buffer.alloc(size);
    const length = readSync(fd, content, 0, size, 0);
    return content.toString("utf8", 0, length);
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}
