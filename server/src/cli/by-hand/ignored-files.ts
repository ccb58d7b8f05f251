import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { globsOf, isGitFolder, type LocalEntry } from "@ambit/workspace";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { localEntry } from "./local-file.js";

/** Files and links that `--include` takes along. */
const maxIncluded = 300_000;

export interface Included {
  readonly entries: readonly LocalEntry[];
  /** What git ignores and no pattern names. */
  readonly left: readonly string[];
}

/**
 * What the patterns take along of what git ignores: a folder with everything in it. A pattern without a slash counts at any
 * depth, but not within a folder that is ignored whole.
 *
 * @param ignored as git lists them: a folder that is ignored whole has a slash at its end.
 * @throws ConfigurationInvalid for a pattern that names nothing, or too much
 */
export async function includedFiles(
  folder: string,
  ignored: readonly string[],
  patterns: readonly string[],
): Promise<Included> {
  const wanted = patterns.map((pattern) => {
    const plain = pattern.replace(/^\.\//, "").replace(/\/+$/, "");
    const isPath = plain.includes("/");
    return { pattern, isUsed: false, isPath, globs: globsOf(isPath ? [plain] : [plain, `**/${plain}`]) };
  });
  const taken = new Map<string, LocalEntry>();
  const look = async (path: string, isWhole: boolean, isListed: boolean): Promise<void> => {
    const named = wanted.filter(({ globs, isPath }) => (isPath || isListed) && globs.matches(path));
    for (const one of named) one.isUsed = true;
    const isTaken = isWhole || named.length > 0;
    const isFolder = isTaken || wanted.some(({ globs, isPath }) => isPath && globs.mayMatchBelow(path));
    const below = isFolder ? await namesIn(folder, path) : undefined;
    for (const name of below ?? []) await look(`${path}/${name}`, isTaken, false);
    if (below !== undefined || !isTaken) return;
    const entry = await localEntry(folder, path);
    if (entry !== undefined) taken.set(path, entry);
    if (taken.size > maxIncluded)
      throw new ConfigurationInvalid("--include", [
        `takes more than ${maxIncluded.toLocaleString("en")} files along: name less`,
      ]);
  };
  const left: string[] = [];
  for (const listed of ignored) {
    const before = taken.size;
    await look(listed.replace(/\/$/, ""), false, true);
    // Git lists a folder, and what is ignored in it.
    if (taken.size === before && !left.some((path) => listed.startsWith(path))) left.push(listed);
  }
  const unused = wanted.filter(({ isUsed }) => !isUsed).map(({ pattern }) => pattern);
  if (unused.length > 0)
    throw new ConfigurationInvalid("--include", [
      `names nothing that git ignores in ${folder}: ${unused.join(", ")}: leave it out, or name what is there`,
    ]);
  const paths = [...taken.keys()];
  const hasTaken = (one: string) => paths.some((path) => path.startsWith(one));
  return { entries: [...taken.values()], left: left.filter((one) => !hasTaken(one)) };
}

/** Undefined for what is no folder. What git keeps of a repository in it stays behind. */
async function namesIn(folder: string, path: string): Promise<readonly string[] | undefined> {
  const names = await readdir(join(folder, path)).catch(() => undefined);
  return names?.filter((name) => !isGitFolder(name)).sort();
}
