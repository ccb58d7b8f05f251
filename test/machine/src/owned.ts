import { readFileSync } from "node:fs";
import { mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** When a process started, in the kernel's ticks since boot: with its id, this is unique. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** The name contains its owner's process id and start time: `<prefix>-<pid>-<ticks>-<random>`. */
function parse(prefix: string, name: string): { readonly pid: number; readonly started: string } | undefined {
  if (!name.startsWith(`${prefix}-`)) return undefined;
  const [, pid, started] = /^(\d+)-(\d+)-/.exec(name.slice(prefix.length + 1)) ?? [];
  return pid === undefined || started === undefined ? undefined : { pid: Number(pid), started };
}

/** The process id of a name's owner, which may have ended. */
export function ownerOf(prefix: string, name: string): number | undefined {
  return parse(prefix, name)?.pid;
}

/** Whether the name is of this prefix, and its owner has ended. */
export function isLeft(prefix: string, name: string): boolean {
  const owner = parse(prefix, name);
  return owner !== undefined && startTime(owner.pid) !== owner.started;
}

export interface OwnedFolder {
  readonly folder: string;
  /** The folder's own name, for cgroups and links too. */
  readonly name: string;
}

/** A new folder in the system's temporary folder, owned by this process. */
export async function createOwnedFolder(prefix: string): Promise<OwnedFolder> {
  const own = `${prefix}-${process.pid}-${startTime(process.pid)}-`;
  const folder = await mkdtemp(join(tmpdir(), own));
  return { folder, name: basename(folder) };
}

/** Names in the temporary folder whose owners have ended. */
export async function leftNames(prefix: string): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => isLeft(prefix, name));
}
