import { readFile } from "node:fs/promises";
import { join } from "node:path";

export type Controller = "memory" | "pids" | "cpu";

/** Where this process sees a controller's groups. */
export interface Hierarchy {
  readonly version: 1 | 2;
  /** The runner's own group, as a folder. */
  readonly own: string;
  /** The folder of the topmost group in this mount. */
  readonly root: string;
}

/** Each controller's hierarchy; absent where this kernel or container has none. */
export type Hierarchies = Readonly<Partial<Record<Controller, Hierarchy>>>;

export async function findHierarchies(): Promise<Hierarchies> {
  const [mounts, groups] = await Promise.all([
    readFile("/proc/self/mountinfo", "latin1"),
    readFile("/proc/self/cgroup", "latin1"),
  ]);
  return parseHierarchies(mounts, groups);
}

/** Pure. @param groups `/proc/self/cgroup`: `4:memory:/path` for version 1, `0::/path` for version 2 (cgroups(7)). */
export function parseHierarchies(mounts: string, groups: string): Hierarchies {
  const found: Partial<Record<Controller, Hierarchy>> = {};
  const mounted = mounts.split("\n").flatMap((line) => parseMount(line));
  for (const line of groups.split("\n")) {
    const [number, names, ...rest] = line.split(":");
    const path = rest.join(":");
    const version = number === "0" && names === "" ? 2 : 1;
    for (const controller of ["memory", "pids", "cpu"] as const) {
      const mount = mounted.find((candidate) =>
        version === 2
          ? candidate.type === "cgroup2"
          : candidate.type === "cgroup" && candidate.options.includes(controller),
      );
      if (mount === undefined || (version === 1 && !(names ?? "").split(",").includes(controller))) continue;
      // A controller is in one hierarchy only; the line of version 1 names it and comes first.
      found[controller] ??= {
        version,
        own: join(mount.point, pathBelow(path, mount.top)),
        root: mount.point,
      };
    }
  }
  return found;
}

/** The path of a process's group. Pure. @param groups its `/proc/<pid>/cgroup`. Undefined where it is in none. */
export function groupOf(groups: string, controller: Controller, version: 1 | 2): string | undefined {
  const lines = groups.split("\n").map((line) => line.split(":"));
  const found = lines.find(([number, names = ""]) =>
    version === 2 ? number === "0" && names === "" : names.split(",").includes(controller),
  );
  return found?.slice(2).join(":");
}

interface Mount {
  readonly type: string;
  readonly point: string;
  /** The mounted group. */
  readonly top: string;
  readonly options: readonly string[];
}

/** proc_pid_mountinfo(5): number, parent, device, root, mount point, options, optional fields, `-`, type, source, options. */
function parseMount(line: string): Mount[] {
  const [before = "", after = ""] = line.split(" - ");
  const [, , , top = "/", point = ""] = before.split(" ");
  const [type = "", , options = ""] = after.split(" ");
  return type === "cgroup" || type === "cgroup2" ? [{ type, point, top, options: options.split(",") }] : [];
}

function pathBelow(path: string, top: string): string {
  if (top === "/") return path;
  return path.startsWith(`${top}/`) ? path.slice(top.length) : "/";
}
