import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { kill } from "./kill.js";

const root = "/sys/fs/cgroup";

/** More processes than any test needs, but few enough for the machine. */
const maxProcesses = 4096;
const periodMicroseconds = 100_000;

export interface Limits {
  readonly cpu: number;
  readonly memoryBytes: number;
}

interface Setting {
  readonly file: string;
  readonly value: (limits: Limits) => string;
}

const quota = ({ cpu }: Limits) => String(Math.round(cpu * periodMicroseconds));

const version1: Readonly<Record<string, readonly Setting[]>> = {
  memory: [{ file: "memory.limit_in_bytes", value: ({ memoryBytes }) => String(memoryBytes) }],
  cpu: [
    { file: "cpu.cfs_period_us", value: () => String(periodMicroseconds) },
    { file: "cpu.cfs_quota_us", value: quota },
  ],
  pids: [{ file: "pids.max", value: () => String(maxProcesses) }],
  // Root inside may mount, but must not reach the machine's disks that way.
  devices: [{ file: "devices.deny", value: () => "b *:* rwm" }],
};

const version2: Readonly<Record<string, readonly Setting[]>> = {
  memory: [
    { file: "memory.max", value: ({ memoryBytes }) => String(memoryBytes) },
    { file: "memory.oom.group", value: () => "0" },
  ],
  cpu: [{ file: "cpu.max", value: (limits) => `${quota(limits)} ${periodMicroseconds}` }],
  pids: [{ file: "pids.max", value: () => String(maxProcesses) }],
};

/** The highest weight against other programs, by the file that holds it in either version. */
const highestWeight = { "cpu.shares": "262144", "cpu.weight": "10000" };

interface Hierarchy {
  readonly folder: string;
  readonly settings: readonly Setting[];
  readonly limits: readonly string[];
}

async function hierarchies(): Promise<Hierarchy[]> {
  const unified = `${root}/cgroup.controllers`;
  if (!existsSync(unified))
    return Object.entries(version1)
      .filter(([controller]) => existsSync(`${root}/${controller}/cgroup.procs`))
      .map(([controller, settings]) => ({ folder: `${root}/${controller}`, settings, limits: [controller] }));
  const offered = (await readFile(unified, "utf8")).trim().split(" ");
  const limits = Object.keys(version2).filter((controller) => offered.includes(controller));
  try {
    await writeFile(`${root}/cgroup.subtree_control`, limits.map((controller) => `+${controller}`).join(" "));
  } catch {
    // A container whose cgroups are read-only, or contain processes: limits aren't possible.
    return [];
  }
  return [{ folder: root, settings: limits.flatMap((controller) => version2[controller] ?? []), limits }];
}

/** A runner's cgroups: one for each sandbox in each hierarchy of the machine. */
export class Cgroups {
  private constructor(
    private readonly name: string,
    private readonly hierarchies: readonly Hierarchy[],
  ) {}

  /** @param ownProcessors whether its processes come before others of this machine. */
  static async create(name: string, ownProcessors: boolean): Promise<Cgroups> {
    const found = await hierarchies();
    for (const { folder } of found) await mkdir(`${folder}/${name}`, { recursive: true });
    const cgroups = new Cgroups(name, found);
    // Sandboxes are one level further down, where the controllers must be enabled too.
    for (const { folder, limits } of found)
      if (existsSync(`${folder}/${name}/cgroup.subtree_control`))
        await writeFile(
          `${folder}/${name}/cgroup.subtree_control`,
          limits.map((controller) => `+${controller}`).join(" "),
        );
    if (ownProcessors) await cgroups.#preferProcessors();
    return cgroups;
  }

  async #preferProcessors(): Promise<void> {
    for (const { folder } of this.hierarchies)
      for (const [file, weight] of Object.entries(highestWeight)) {
        const path = `${folder}/${this.name}/${file}`;
        if (existsSync(path)) await writeFile(path, weight);
      }
  }

  /** The limits that this machine enforces, of `memory`, `cpu`, `pids`, `devices`. */
  get limits(): readonly string[] {
    return this.hierarchies.flatMap(({ limits }) => limits);
  }

  async place(id: string, pids: readonly number[], limits: Limits): Promise<void> {
    for (const { folder, settings } of this.hierarchies) {
      const group = `${folder}/${this.name}/${id}`;
      await mkdir(group, { recursive: true });
      for (const { file, value } of settings) await writeFile(`${group}/${file}`, value(limits));
      for (const pid of pids) await writeFile(`${group}/cgroup.procs`, String(pid));
    }
  }

  async remove(id: string): Promise<void> {
    for (const { folder } of this.hierarchies) await removeGroup(`${folder}/${this.name}/${id}`);
  }

  async removeAll(): Promise<void> {
    for (const { folder } of this.hierarchies) await removeTree(`${folder}/${this.name}`);
  }
}

/** Kills its processes. The group can be removed only a moment after the last one has ended. */
async function removeGroup(group: string): Promise<void> {
  for (let tries = 1_000; existsSync(group); tries -= 1) {
    const processes = await readFile(`${group}/cgroup.procs`, "utf8").catch(() => "");
    for (const pid of processes.split("\n")) if (pid !== "") kill(Number(pid));
    try {
      await rmdir(group);
    } catch (error) {
      if (tries === 0) throw error;
      await sleep(10);
    }
  }
}

async function removeTree(group: string): Promise<void> {
  if (!existsSync(group)) return;
  const entries = await readdir(group, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeTree(`${group}/${entry.name}`);
  await removeGroup(group);
}

/** Removes the cgroups of ended runners. @param isGone by the runner's name. */
export async function removeLeftCgroups(isGone: (name: string) => boolean): Promise<void> {
  const folders = existsSync(`${root}/cgroup.controllers`)
    ? [root]
    : Object.keys(version1).map((controller) => `${root}/${controller}`);
  for (const folder of folders) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names) if (isGone(name)) await removeTree(`${folder}/${name}`);
  }
}
