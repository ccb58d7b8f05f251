import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const execute = promisify(execFile);

const prefix = "ambit-docker-";
const pattern = /^ambit-docker-(\d+)-(\d+)-/;
const cgroupRoot = "/sys/fs/cgroup";
const shutdownTimeoutMs = 10_000;

/** When a process started, in the kernel's ticks since boot: with its id, this is unique. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** Whether the name is that of an engine whose owner has ended. */
function isLeft(name: string): boolean {
  const [, pid, started] = pattern.exec(name) ?? [];
  return pid !== undefined && startTime(Number(pid)) !== started;
}

/** A folder whose name, which the engine's cgroup also has, tells whether its owner lives. */
export async function createFolder(): Promise<{ readonly folder: string; readonly name: string }> {
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-${startTime(process.pid)}-`));
  return { folder, name: basename(folder) };
}

/** The bridges of an engine's networks, which are the host's: unlike its other parts they outlive a killed engine. */
export function bridgesOf(name: string): { readonly sandboxes: string; readonly compose: string } {
  const [, pid] = pattern.exec(name) ?? [];
  return { sandboxes: `ambit${pid}s`, compose: `ambit${pid}c` };
}

export async function removeBridges(name: string): Promise<void> {
  // It fails if there is none.
  for (const bridge of Object.values(bridgesOf(name)))
    await execute("ip", ["link", "delete", bridge, "type", "bridge"]).catch(() => {});
}

/**
 * Removes what killed owners left: folders, cgroups and bridges. Processes and mounts are gone already: an engine ends with its
 * owner, and its namespaces with it.
 */
export async function removeLeftovers(): Promise<void> {
  const names = new Set([...(await readdir(tmpdir())), ...(await cgroupNames())]);
  for (const name of names) {
    if (!isLeft(name)) continue;
    await removeCgroups(name);
    await removeBridges(name);
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

/** The root of each hierarchy: one of version 2, or one per controller of version 1. */
async function hierarchies(): Promise<string[]> {
  if (existsSync(`${cgroupRoot}/cgroup.controllers`)) return [cgroupRoot];
  const names = await readdir(cgroupRoot).catch(() => []);
  return names.map((name) => `${cgroupRoot}/${name}`);
}

async function cgroupNames(): Promise<string[]> {
  const listed = (await hierarchies()).map((folder) => readdir(folder).catch(() => []));
  return (await Promise.all(listed)).flat();
}

/** Removes an engine's cgroups, and ends what is still in them. */
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
