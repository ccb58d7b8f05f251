import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type Readability, type RequiredPath, SandboxFailed } from "@ambit/core/plugin";
import type { RelocatedMount, ShownPath, SystemEntry } from "../arguments.js";

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

export interface RequiredPaths {
  readonly shown: readonly ShownPath[];
  /** Paths that only the runner can reach, below a home that is closed to other users. */
  readonly relocatedMounts: readonly RelocatedMount[];
  /** Folders that stay hidden although they are inside a shown path. */
  readonly covered: readonly string[];
}

/** This Node, for programs that run on it: its installation folder if it has one. */
export async function nodeInstallation(): Promise<RequiredPath> {
  const program = await realpath(process.execPath);
  const folder = dirname(program);
  if (program.startsWith("/nix/store/")) return { path: "/nix/store", what: "Node.js" };
  return {
    path: basename(folder) === "bin" && folder !== "/bin" ? dirname(folder) : program,
    what: "Node.js",
  };
}

/**
 * Determines how each required path is shown at its own path, and at its real path if it is a link.
 *
 * @param dataFolder its real path.
 * @param relocatedFolder folder for the mount points of paths that only the runner can reach; undefined when the session runs as
 * the runner's user, so that none is needed.
 * @throws SandboxFailed when one of them doesn't exist, or is closed to the session's own user.
 */
export async function resolveRequiredPaths(
  wanted: readonly RequiredPath[],
  system: readonly SystemEntry[],
  dataFolder: string,
  relocatedFolder: string | undefined,
): Promise<RequiredPaths> {
  const shown: ShownPath[] = [];
  const relocatedMounts: RelocatedMount[] = [];
  const covered = new Set<string>();
  const sources = new Map<string, string>();
  const isIn = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);
  const isSystem = (path: string) => isOfSystem(path, system);
  const show = async (real: string, place: string) => {
    if (shown.some((other) => other.path === place)) return;
    if (isIn(dataFolder, real)) covered.add(place + dataFolder.slice(real.length));
    let source = sources.get(real);
    if (source === undefined) {
      source = real;
      if (relocatedFolder !== undefined && !(await isOpenToAll(real))) {
        source = join(relocatedFolder, String(relocatedMounts.length));
        relocatedMounts.push({ source: real, place: source });
      }
      sources.set(real, source);
    }
    shown.push({ path: place, source });
  };
  const links: { readonly path: string; readonly real: string }[] = [];
  for (const { path, what } of wanted) {
    const real = await realpath(path).catch((error: unknown) => {
      throw new SandboxFailed(`${what} isn't at ${path}: install it, or fix the path`, { cause: error });
    });
    if (real === "/")
      throw new SandboxFailed(`${what} would show the whole host: name its own folder instead of /`);
    if (relocatedFolder !== undefined && !(await isOpenItself(real))) {
      throw new SandboxFailed(
        `${what} at ${path} can't be used by a session's own user: let others read it (chmod -R o+rX ${real})`,
      );
    }
    if (!isSystem(real)) await show(real, real);
    links.push({ path: resolve(path), real });
  }
  links.sort((one, other) => one.path.length - other.path.length);
  for (const { path, real } of links) {
    const isThere = (place: string) => isSystem(place) || shown.some((other) => isIn(place, other.path));
    const place = await placeBeyond(path, isThere);
    if (place !== undefined) await show(real, place);
  }
  shown.sort((one, other) => one.path.length - other.path.length);
  return { shown, relocatedMounts, covered: [...covered] };
}

/**
 * Where a path needs a mount of its own: its links that are shown already are followed, since nothing can be mounted on them.
 * Undefined: all of it is there.
 */
async function placeBeyond(path: string, isThere: (place: string) => boolean): Promise<string | undefined> {
  const names = path.split("/").slice(1);
  for (let count = 1; count <= names.length; count++) {
    const place = `/${names.slice(0, count).join("/")}`;
    if (!isThere(place) || !(await lstat(place)).isSymbolicLink()) continue;
    const followed = resolve(dirname(place), await readlink(place), ...names.slice(count));
    return placeBeyond(followed, isThere);
  }
  return isThere(path) ? undefined : path;
}

/** Whether every jail shows a path as a part of this host's system. */
export function isOfSystem(path: string, system: readonly SystemEntry[]): boolean {
  return system.some((entry) => path === entry.path || path.startsWith(`${entry.path}/`));
}

/** Whether an unprivileged user may pass through a folder and all its parents. */
export async function isPassable(folder: string): Promise<boolean> {
  for (let path = folder; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === "/") return true;
  }
}

/** Whether other users can use it where they can reach it: a mount makes nothing more of it. */
async function isOpenItself(path: string): Promise<boolean> {
  const stats = await stat(path);
  return (stats.mode & (stats.isDirectory() ? 0o001 : 0o005)) !== 0;
}

async function isOpenToAll(path: string): Promise<boolean> {
  return ((await stat(path)).mode & 0o004) !== 0 && (await isPassable(dirname(path)));
}
