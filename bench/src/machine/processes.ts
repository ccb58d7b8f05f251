import { readdirSync, readFileSync } from "node:fs";

/** A process identified by its number and start time, so that a reused number is another process. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly started: string;
}

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly started: string;
  /** CPU of the process, and of all children that it has waited for. */
  readonly ticks: number;
}

/** Linux counts in hundredths of a second, regardless of its timer. */
const msPerTick = 10;

function statOf(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    // It has ended.
    return undefined;
  }
  // After the program's name, which may contain any character: fields 3 (state) and later of proc(5).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
  return { state: fields[0] ?? "", parent: Number(fields[1]), started: fields[19] ?? "", ticks };
}

function allProcesses(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** On the command line of the runner's watch process, which ends after the runner. */
const watch = "ambit-watch";

/** All running descendants of a process, except a runner's watch process. */
export function descendantsOf(pid: number): readonly ProcessIdentity[] {
  const children = new Map<number, ProcessIdentity[]>();
  for (const each of allProcesses()) {
    const stat = statOf(each);
    if (stat === undefined || stat.state === "Z") continue;
    if (readable(`/proc/${each}/cmdline`).includes(watch)) continue;
    const siblings = children.get(stat.parent);
    const identity = { pid: each, started: stat.started };
    if (siblings === undefined) children.set(stat.parent, [identity]);
    else siblings.push(identity);
  }
  const found: ProcessIdentity[] = [];
  const queue = [pid];
  for (let parent = queue.pop(); parent !== undefined; parent = queue.pop()) {
    for (const child of children.get(parent) ?? []) {
      found.push(child);
      queue.push(child.pid);
    }
  }
  return found;
}

function readable(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // It has ended, or is another user's.
    return "";
  }
}

/** CPU milliseconds of a process and of the children that it has waited for, with a resolution of ten milliseconds. */
export function cpuMsOf(pid: number): number {
  return (statOf(pid)?.ticks ?? Number.NaN) * msPerTick;
}

/** MiB that a process adds to this machine: its proportional share of memory (PSS). */
export function pssMibOf(pid: number): number {
  return memoryMibOf(pid).pss;
}

/** MiB: PSS, and the resident memory including shared pages (RSS). */
export function memoryMibOf(pid: number): { readonly pss: number; readonly rss: number } {
  const rollup = readable(`/proc/${pid}/smaps_rollup`);
  const kibibytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1] ?? 0);
  return { pss: kibibytes("Pss") / 1024, rss: kibibytes("Rss") / 1024 };
}
