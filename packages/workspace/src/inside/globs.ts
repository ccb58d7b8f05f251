import picomatch from "picomatch";

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
