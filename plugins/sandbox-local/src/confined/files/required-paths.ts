import { realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type RequiredPath, SandboxFailed } from "@ambit/core/plugin";
import type { ShownPath, SystemEntry } from "../launch/arguments.js";
import type { RelocatedMount } from "../launch/stages.js";

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
 * @throws SandboxFailed when one of them doesn't exist.
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
  const isShown = (path: string) =>
    system.some((entry) => path === entry.path || path.startsWith(`${entry.path}/`));
  for (const { path, what } of wanted) {
    const real = await realpath(path).catch((error: unknown) => {
      throw new SandboxFailed(`${what} isn't at ${path}: install it, or fix the path`, { cause: error });
    });
    if (real === "/")
      throw new SandboxFailed(`${what} would show the whole host: name its own folder instead of /`);
    const places = [...new Set([real, path])].filter(
      (place) => !isShown(place) && !shown.some((other) => other.path === place),
    );
    if (places.length === 0) continue;
    if (dataFolder === real || dataFolder.startsWith(`${real}/`)) {
      for (const place of places) covered.add(place + dataFolder.slice(real.length));
    }
    let source = real;
    if (relocatedFolder !== undefined && !(await isOpenToAll(real))) {
      source = join(relocatedFolder, String(relocatedMounts.length));
      relocatedMounts.push({ source: real, place: source });
    }
    for (const place of places) shown.push({ path: place, source });
  }
  shown.sort((one, other) => one.path.length - other.path.length);
  return { shown, relocatedMounts, covered: [...covered] };
}

/** Whether an unprivileged user may pass through a folder and all its parents. */
export async function isPassable(folder: string): Promise<boolean> {
  for (let path = folder; ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === "/") return true;
  }
}

async function isOpenToAll(path: string): Promise<boolean> {
  return ((await stat(path)).mode & 0o004) !== 0 && (await isPassable(dirname(path)));
}
