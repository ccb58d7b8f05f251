import { readdirSync, readFileSync } from "node:fs";

/** The number of processes on this host with the marker in their command line, including those in jails. */
export function running(marker: string): number {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && commandOf(name).includes(marker)).length;
}

/** The same among the descendants of a process. */
export function runningBelow(pid: number, marker: string): number {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const parents = new Map(all.map((name) => [Number(name), parentOf(name)]));
  const isBelow = (one: number): boolean => {
    const parent = parents.get(one);
    return parent === pid || (parent !== undefined && isBelow(parent));
  };
  return all.filter((name) => isBelow(Number(name)) && commandOf(name).includes(marker)).length;
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the program's name, which may contain any character, come the state and the parent.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // It has exited meanwhile.
    return undefined;
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    // It has exited meanwhile.
    return "";
  }
}

let count = 0;

/** An argument for `sleep` that is unique on this host. */
export function sleepMarker(): string {
  count += 1;
  return `${600 + count}.${process.pid}${Date.now() % 100_000}`;
}
