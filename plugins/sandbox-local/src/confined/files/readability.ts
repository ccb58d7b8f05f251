import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readability, RequiredPath } from "@ambit/core/plugin";

/** Entries of one required folder that are looked at. */
const maxEntries = 2_000;

/**
 * Whether a session's own user, who is neither the owner nor in the group, can read required paths and the programs in
 * them. Their parents don't count: a path below a closed home is mounted elsewhere first.
 */
export function readabilityOf(paths: readonly RequiredPath[]): Readability {
  const closedPaths = paths.flatMap(({ path, what }) => {
    const closed = closedPath(path);
    return closed === undefined ? [] : [{ ...closed, what, folder: packageRoot(path) }];
  });
  const [first] = closedPaths;
  if (first === undefined) return true;
  const mode = (first.stats.mode & 0o777).toString(8).padStart(4, "0");
  return {
    reason: `${first.what} can't be read by a session's own user: ${first.path} has the mode ${mode}, as an umask of 077 leaves it`,
    fix: `chmod -R go+rX ${[...new Set(closedPaths.map(({ folder }) => folder))].join(" ")}`,
  };
}

/** Packages that one command installed are mended by one command. */
const packageRoot = (path: string) => /^.*?\/node_modules(?=\/)/.exec(path)?.[0] ?? path;

/** The first path that keeps other users from a program's file; undefined if there is none, or nothing at all. */
function closedPath(path: string): { readonly path: string; readonly stats: Stats } | undefined {
  const top = statSync(path, { throwIfNoEntry: false });
  if (top === undefined) return undefined;
  if (isClosed(top)) return { path, stats: top };
  if (!top.isDirectory()) return undefined;
  const root = realpathSync(path);
  let left = maxEntries;
  const folders = [root];
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (left-- === 0) return undefined;
      const place = join(folder, entry.name);
      if (entry.isDirectory() && !isSkipped(entry)) folders.push(place);
      const stats = entry.isFile() ? statSync(place, { throwIfNoEntry: false }) : undefined;
      if (stats === undefined || !isProgram(entry.name, stats)) continue;
      if (isClosed(stats)) return { path: place, stats };
      for (let parent = folder; parent.length > root.length; parent = dirname(parent)) {
        const above = statSync(parent);
        if (isClosed(above)) return { path: parent, stats: above };
      }
    }
  }
  return undefined;
}

function isClosed(stats: Stats): boolean {
  const needed = stats.isDirectory() ? 0o005 : 0o004;
  return (stats.mode & needed) !== needed;
}

/** Packages are required paths of their own; what tools keep for themselves is no program. */
const isSkipped = ({ name }: Dirent) => name === "node_modules" || name.startsWith(".");

/** Not each file: one that only its owner reads may belong there. */
const isProgram = (name: string, { mode }: Stats) =>
  /\.[cm]?js$/.test(name) || name === "package.json" || (mode & 0o111) !== 0;
