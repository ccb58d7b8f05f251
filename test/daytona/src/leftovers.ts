import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { removeLeftCgroups } from "./runner/container/cgroups.js";

const prefix = "ambit-daytona-";
const pattern = /^ambit-daytona-(\d+)-(\d+)-/;

/** When a process started, in the kernel's ticks since boot: with the pid, it identifies the process permanently. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** Whether the name is that of a loopback whose owner has ended. */
function isLeft(name: string): boolean {
  const [, pid, started] = pattern.exec(name) ?? [];
  return pid !== undefined && startTime(Number(pid)) !== started;
}

/** A separate folder. Its name, which the cgroups have too, shows whether its owner lives. */
export async function createFolder(): Promise<{ readonly folder: string; readonly name: string }> {
  const own = `${prefix}${process.pid}-${startTime(process.pid)}-`;
  const folder = await mkdtemp(join(tmpdir(), own));
  return { folder, name: basename(folder) };
}

/**
 * Removes what killed owners left: folders and cgroups. Namespaces, links, mounts and processes end with the runner,
 * which ends with its owner.
 */
export async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir()))
    if (isLeft(name)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  await removeLeftCgroups(isLeft);
}
