interface Mount {
  readonly path: string;
  readonly type: string;
  readonly options: ReadonlySet<string>;
}

/** File systems in which a process without privileges changes nothing but what concerns it. */
const ofKernel = new Set(["proc", "devpts", "mqueue"]);
/** Below them, only devices and memory are mounted. */
const ofDevices = ["/dev"];

/** Folders of a sandbox that its processes may write to. */
export interface WritableFolders {
  readonly workspace: string;
  readonly home: string;
  /** Without the workspace: it is read-only, or isn't there. */
  readonly scratch: readonly string[];
  /** Mounted writable, for root: an attempt of the run's user to write to each must have failed. */
  readonly closed: readonly string[];
}

export const scratchFolders = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/**
 * Mounts in `/proc/self/mountinfo` that more can be done with than writing the run's own files: writable ones elsewhere, and
 * scratch that honours set-user-ID bits or devices. Pure.
 *
 * @param hasNoFlags gVisor shows no such flags, and some platforms set none.
 */
export function excessMounts(
  mountinfo: string,
  { workspace, home, scratch, closed }: WritableFolders,
  hasNoFlags: boolean,
): readonly string[] {
  const isBelow = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);
  return mountsIn(mountinfo).flatMap(({ path, type, options }) => {
    if (options.has("ro") || ofKernel.has(type) || closed.includes(path)) return [];
    // A device in place of a file, such as /dev/null over a table of the kernel's.
    if (
      path.startsWith("/proc/") ||
      ofDevices.some((folder) => isBelow(path, folder) && !isBelow(path, "/dev/shm"))
    )
      return [];
    // Only folders of the hierarchies, which are mounted by themselves.
    if (path === "/sys/fs/cgroup" && type === "tmpfs") return [];
    const isWorkspace = [workspace, home].some((folder) => isBelow(folder, path) && path !== "/");
    if (isWorkspace || isBelow(path, workspace) || isBelow(path, home)) return [];
    if (!scratch.some((folder) => isBelow(path, folder))) return [`${path} is mounted writable`];
    if (hasNoFlags) return [];
    const missing = ["nosuid", "nodev"].filter((flag) => !options.has(flag));
    return missing.length === 0 ? [] : [`${path} is mounted without ${missing.join(" and ")}`];
  });
}

/** The mount at this very path, if there is one. */
export function mountAt(mountinfo: string, path: string): Pick<Mount, "type"> | undefined {
  return mountsIn(mountinfo).find((mount) => mount.path === path);
}

/** Whether it belongs to a mount that is read-only. */
export function isReadOnlyMount(mountinfo: string, path: string): boolean {
  const [nearest] = mountsIn(mountinfo)
    .filter((mount) => path === mount.path || path.startsWith(`${mount.path === "/" ? "" : mount.path}/`))
    .sort((one, other) => other.path.length - one.path.length);
  return nearest?.options.has("ro") === true;
}

/** The last mount at a path covers the others. */
function mountsIn(mountinfo: string): readonly Mount[] {
  const mounts = new Map<string, Mount>();
  for (const line of mountinfo.split("\n")) {
    const [own = "", shared = ""] = line.split(" - ");
    const [, , , , path, options] = own.split(" ");
    const [type] = shared.split(" ");
    if (path === undefined || options === undefined || type === undefined) continue;
    mounts.set(path, { path, type, options: new Set(options.split(",")) });
  }
  return [...mounts.values()];
}
