import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const cgroupRoot = "/sys/fs/cgroup";
const shutdownTimeoutMs = 10_000;

/** The root of each hierarchy: one of version 2, or one per controller of version 1. */
async function hierarchies(): Promise<string[]> {
  if (existsSync(`${cgroupRoot}/cgroup.controllers`)) return [cgroupRoot];
  const names = await readdir(cgroupRoot).catch(() => []);
  return names.map((name) => `${cgroupRoot}/${name}`);
}

/** The groups at the root of all hierarchies. */
export async function cgroupNames(): Promise<string[]> {
  const listed = (await hierarchies()).map((folder) => readdir(folder).catch(() => []));
  return (await Promise.all(listed)).flat();
}

/** Creates a group of this name at the root of each hierarchy. */
export async function createCgroups(name: string): Promise<void> {
  for (const folder of await hierarchies()) {
    await mkdir(join(folder, name), { recursive: true });
    await inheritCpus(folder, name);
  }
}

/** A new group of version 1 has no CPUs and no memory nodes, so that no process can join it. */
async function inheritCpus(folder: string, name: string): Promise<void> {
  for (const file of ["cpuset.cpus", "cpuset.mems"]) {
    if (!existsSync(join(folder, file)) || !existsSync(join(folder, name, file))) continue;
    await writeFile(join(folder, name, file), await readFile(join(folder, file), "utf8"));
  }
}

/** Removes the groups of this name, and ends what is still in them. */
export async function removeCgroups(name: string): Promise<void> {
  for (const folder of await hierarchies()) await removeTree(join(folder, name));
}

async function removeTree(group: string): Promise<void> {
  if (!existsSync(group)) return;
  for (const entry of await readdir(group, { withFileTypes: true }))
    if (entry.isDirectory()) await removeTree(join(group, entry.name));
  const deadline = Date.now() + shutdownTimeoutMs;
  while (existsSync(group)) {
    await endProcesses(group);
    try {
      await rmdir(group);
    } catch (error) {
      // The kernel removes a group only a moment after its last process has ended.
      if (Date.now() > deadline) throw error;
      await sleep(10);
    }
  }
}

async function endProcesses(group: string): Promise<void> {
  // A frozen process doesn't end.
  if (existsSync(`${group}/freezer.state`))
    await writeFile(`${group}/freezer.state`, "THAWED").catch(() => {});
  const listed = await readFile(`${group}/cgroup.procs`, "utf8").catch(() => "");
  for (const pid of listed.split("\n").map(Number)) {
    // 0 means a process that isn't visible in this namespace.
    if (pid > 0) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended already.
      }
    }
  }
}
