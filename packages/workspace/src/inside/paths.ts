import picomatch from "picomatch";

/**
 * What git keeps is no part of a workspace's files, and would be executed where it is put. So are names that lead to its folder on
 * other file systems, as git itself refuses them: with dots, spaces or a stream behind them, or characters that HFS+ ignores.
 * @param name of a file or folder
 */
export function isGitFolder(name: string): boolean {
  return /^(?:\.git|git~1)[. ]*(?:$|:)/i.test(name.replace(ignored, ""));
}

const ignored = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/** Globs of a request, as decisions about paths. */
export interface Globs {
  matches(path: string): boolean;
  /** Whether a path below this folder may match. */
  mayMatchBelow(folder: string): boolean;
}

export function globsOf(include: readonly string[]): Globs {
  const matches = include.map((glob) => picomatch(glob, { dot: true }));
  const bases = include.map((glob) => picomatch.scan(glob).base);
  return {
    matches: (path) => matches.some((isMatch) => isMatch(path)),
    mayMatchBelow: (folder) =>
      bases.some((base) => base === "" || base === "." || isWithin(folder, base) || isWithin(base, folder)),
  };
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
