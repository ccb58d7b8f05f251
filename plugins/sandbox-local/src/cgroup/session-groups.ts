import { readdirSync, readFileSync } from "node:fs";
import {
  constants,
  type FileHandle,
  mkdir,
  open,
  readFile,
  rename,
  rmdir,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  codeOf,
  type Evidence,
  type LimitHits,
  messageOf,
  type ResourceLimits,
  SandboxFailed,
} from "@ambit/core/plugin";
import { signal } from "../process/host-processes.js";

type Controller = "memory" | "pids" | "cpu";

/** Where this process sees a controller's groups. */
interface Hierarchy {
  readonly version: 1 | 2;
  /** The runner's own group, as a folder. */
  readonly ownGroup: string;
  /** The folder of the topmost group in this mount. */
  readonly root: string;
}

/** Each controller's hierarchy; absent where this kernel or container has none. */
type Hierarchies = Readonly<Partial<Record<Controller, Hierarchy>>>;

export async function findHierarchies(): Promise<Hierarchies> {
  const [mounts, groups] = await Promise.all([
    readFile("/proc/self/mountinfo", "latin1"),
    readFile("/proc/self/cgroup", "latin1"),
  ]);
  return parseHierarchies(mounts, groups);
}

/** Pure. @param groups `/proc/self/cgroup`: `4:memory:/path` for version 1, `0::/path` for version 2 (cgroups(7)). */
export function parseHierarchies(mounts: string, groups: string): Hierarchies {
  const hierarchies: Partial<Record<Controller, Hierarchy>> = {};
  const mounted = mounts.split("\n").flatMap((line) => parseMount(line));
  for (const line of groups.split("\n")) {
    const [number, names, ...fields] = line.split(":");
    const path = fields.join(":");
    const version = number === "0" && names === "" ? 2 : 1;
    for (const controller of ["memory", "pids", "cpu"] as const) {
      const mount = mounted.find((candidate) =>
        version === 2
          ? candidate.type === "cgroup2"
          : candidate.type === "cgroup" && candidate.options.includes(controller),
      );
      if (mount === undefined || (version === 1 && !(names ?? "").split(",").includes(controller))) continue;
      // A controller is in one hierarchy only; the line of version 1 names it and comes first.
      hierarchies[controller] ??= {
        version,
        ownGroup: join(mount.point, pathBelow(path, mount.top)),
        root: mount.point,
      };
    }
  }
  return hierarchies;
}

/** The path of a process's group. Pure. @param groups its `/proc/<pid>/cgroup`. Undefined where it is in none. */
export function groupOf(groups: string, controller: Controller, version: 1 | 2): string | undefined {
  const lines = groups.split("\n").map((line) => line.split(":"));
  const group = lines.find(([number, names = ""]) =>
    version === 2 ? number === "0" && names === "" : names.split(",").includes(controller),
  );
  return group?.slice(2).join(":");
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

/** One value for one file of a group. `optional`: the kernel may lack the file (no swap accounting). */
interface CgroupSetting {
  readonly file: string;
  readonly value: string;
  readonly optional?: true;
}

const mebibyte = 1024 * 1024;
const periodUs = 100_000;
/** The kernel's minimum quota. */
const minQuotaUs = 1_000;

/**
 * What to write to each controller for these limits, in order. Pure. Reference: the kernel's cgroup-v1 and cgroup-v2
 * documentation.
 */
export function settingsFor(
  limits: ResourceLimits,
  version: 1 | 2,
): Readonly<Partial<Record<Controller, readonly CgroupSetting[]>>> {
  const settings: Partial<Record<Controller, readonly CgroupSetting[]>> = {};
  if (limits.memoryMb !== undefined) {
    const bytes = String(limits.memoryMb * mebibyte);
    settings.memory =
      version === 2
        ? [
            { file: "memory.max", value: bytes },
            { file: "memory.swap.max", value: "0", optional: true },
          ]
        : [
            { file: "memory.limit_in_bytes", value: bytes },
            { file: "memory.memsw.limit_in_bytes", value: bytes, optional: true },
          ];
  }
  if (limits.processes !== undefined) settings.pids = [{ file: "pids.max", value: String(limits.processes) }];
  if (limits.cpus !== undefined) {
    const quota = String(Math.max(minQuotaUs, Math.round(limits.cpus * periodUs)));
    settings.cpu =
      version === 2
        ? [{ file: "cpu.max", value: `${quota} ${periodUs}` }]
        : [
            { file: "cpu.cfs_period_us", value: String(periodUs) },
            { file: "cpu.cfs_quota_us", value: quota },
          ];
  }
  return settings;
}

/** The groups of one session: one for each controller under version 1, one for all under version 2. */
export interface SessionGroups {
  /** Folders. */
  readonly paths: readonly string[];
  /** The group of each controller that has a limit. */
  readonly limited: ReadonlyMap<Controller, LimitedGroup>;
  /** The limits as the kernel reads them back, by file: `{ "pids.max": "20" }`. */
  readonly evidence: Evidence;
  /** How often each limit was reached so far. */
  hits(): LimitHits;
  /**
   * Opens the files of the groups, one for each: a process that writes `0` to it adds itself, and what it starts later
   * inherits the group. The kernel checks the right to do so of whoever opened the file, so a session's user may write.
   */
  entrances(): Promise<readonly FileHandle[]>;
  /** Whether a process is in all of them. @param membership its `/proc/<pid>/cgroup`. */
  include(membership: string): boolean;
  /** Removes them, and ends the processes that are still in them. Safe to call twice. */
  remove(): Promise<void>;
}

export interface LimitedGroup extends Pick<Hierarchy, "version" | "root"> {
  /** Its folder. */
  readonly path: string;
}

const fixes: Readonly<Record<1 | 2, string>> = {
  1: "run as root, or give the runner's user a folder in each hierarchy",
  2: "run as root, or let systemd delegate (Delegate=yes with DelegateSubgroup=runner)",
};

/**
 * Makes groups below the runner's own and sets every limit in them.
 *
 * @param record the file that lists the folders, written before they are made, for the start after a crash.
 * @throws SandboxFailed when a limit can't be set; no group remains then.
 */
export async function makeSessionGroups(
  name: string,
  limits: ResourceLimits,
  record: string,
): Promise<SessionGroups> {
  const hierarchies = await findHierarchies();
  const paths: string[] = [];
  const limited = new Map<Controller, LimitedGroup>();
  const evidence: Record<string, string> = {};
  const groups: SessionGroups = {
    paths,
    limited,
    evidence,
    hits: () => ({
      processes: countIn(paths, ["pids.events"], "max"),
      memory: countIn(paths, ["memory.events", "memory.oom_control"], "oom_kill"),
    }),
    entrances: () => openEntrances([...limited.values()]),
    include: (membership) =>
      [...limited].every(
        ([controller, { version }]) => basename(groupOf(membership, controller, version) ?? "") === name,
      ),
    remove: () => removeGroups(paths),
  };
  try {
    for (const controller of ["memory", "pids", "cpu"] as const) {
      const hierarchy = hierarchies[controller];
      const settings = settingsFor(limits, hierarchy?.version ?? 1)[controller];
      if (settings === undefined) continue;
      if (hierarchy === undefined)
        throw new SandboxFailed(`This host has no ${controller} cgroups: mount them`);
      const { path, readBack } = await makeIn(hierarchy, controller, name, settings, paths, record);
      limited.set(controller, { path, version: hierarchy.version, root: hierarchy.root });
      Object.assign(evidence, readBack);
    }
    return groups;
  } catch (error) {
    await groups.remove();
    throw error;
  }
}

async function makeIn(
  hierarchy: Hierarchy,
  controller: Controller,
  name: string,
  settings: readonly CgroupSetting[],
  madePaths: string[],
  record: string,
): Promise<{ readonly path: string; readonly readBack: Readonly<Record<string, string>> }> {
  let refusal: unknown;
  for (const parent of parentsIn(hierarchy)) {
    const path = join(parent, name);
    const isNew = !madePaths.includes(path);
    try {
      if (hierarchy.version === 2) await enable(parent, controller);
      if (isNew) {
        // Atomically: a half-written record would lose the groups that it listed before.
        await writeFile(`${record}.new`, JSON.stringify([...madePaths, path]));
        await rename(`${record}.new`, record);
        await mkdir(path);
        madePaths.push(path);
      }
      const readBack: Record<string, string> = {};
      for (const setting of settings) {
        if (await apply(path, setting)) readBack[setting.file] = setting.value;
      }
      return { path, readBack };
    } catch (error) {
      refusal = error;
      if (isNew && madePaths.at(-1) === path) {
        madePaths.pop();
        await removeGroups([path]);
      }
    }
  }
  // Without the rest of the system's message, which names the group and so the runner.
  const why = codeOf(refusal) ?? messageOf(refusal);
  throw new SandboxFailed(`The ${controller} limit can't be set (${why}): ${fixes[hierarchy.version]}`, {
    cause: refusal,
  });
}

/**
 * Under version 2 a group holds either processes or limited groups, so this tries the runner's group, then its parent.
 */
function parentsIn({ version, ownGroup, root }: Hierarchy): readonly string[] {
  return version === 2 && ownGroup !== root ? [ownGroup, dirname(ownGroup)] : [ownGroup];
}

async function enable(parent: string, controller: Controller): Promise<void> {
  const enabled = (await readFile(join(parent, "cgroup.subtree_control"), "latin1")).trim().split(" ");
  if (!enabled.includes(controller))
    await writeFile(join(parent, "cgroup.subtree_control"), `+${controller}`);
}

/** Whether the kernel has the file at all. @throws when it doesn't read back what was written. */
async function apply(path: string, { file, value, optional }: CgroupSetting): Promise<boolean> {
  try {
    await writeFile(join(path, file), value, { flag: "r+" });
  } catch (error) {
    if (optional && codeOf(error) === "ENOENT") return false;
    throw error;
  }
  const readBack = (await readFile(join(path, file), "latin1")).trim();
  if (readBack !== value) throw new Error(`${file} reads ${readBack} instead of ${value}`);
  return true;
}

/**
 * Under version 1, a process that adds itself through `tasks` doesn't wait for the kernel, which takes 3 to 20 ms before it
 * moves a process through `cgroup.procs`. Version 2 has no such file for groups with these controllers.
 */
const entranceOf = { 1: "tasks", 2: "cgroup.procs" } as const;

async function openEntrances(groups: readonly LimitedGroup[]): Promise<readonly FileHandle[]> {
  const files = new Set(groups.map(({ path, version }) => join(path, entranceOf[version])));
  const opened = await Promise.allSettled([...files].map((file) => open(file, constants.O_WRONLY)));
  const handles = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const refused = opened.find((result) => result.status === "rejected");
  if (refused === undefined) return handles;
  await Promise.all(handles.map((handle) => handle.close()));
  throw new SandboxFailed(`The session's groups can't be opened (${codeOf(refused.reason) ?? "unknown"})`, {
    cause: refused.reason,
  });
}

/** The count of this name, from whichever of the groups' files has it; 0 if none has. */
function countIn(paths: readonly string[], files: readonly string[], name: string): number {
  const texts = paths.flatMap((path) => files.map((file) => contentOf(join(path, file))));
  return texts.reduce(
    (sum, text) => sum + Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0),
    0,
  );
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENODEV") return "";
    throw error;
  }
}

/** Ends the processes in the groups and removes the groups. A folder that is no longer a group is skipped. */
export async function removeGroups(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (let round = 0; ; round++) {
      for (const pid of processesIn(path)) signal(pid, "SIGKILL");
      try {
        await rmdir(path);
        break;
      } catch (error) {
        if (codeOf(error) === "ENOENT") break;
        if (codeOf(error) !== "EBUSY" || round === 100) throw error;
      }
      await delay(5);
    }
  }
}

function processesIn(path: string): readonly number[] {
  const inGroup = (folder: string): number[] => {
    const own = readFileSync(join(folder, "cgroup.procs"), "latin1").split("\n").filter(Boolean).map(Number);
    const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...below.flatMap((entry) => inGroup(join(folder, entry.name)))];
  };
  try {
    return inGroup(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENODEV") return [];
    throw error;
  }
}
