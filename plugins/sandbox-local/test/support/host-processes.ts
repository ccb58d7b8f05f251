import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** Every process of this host, by number. */
export function hostPids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

/** Its arguments, each ended by NUL; empty when it is gone. */
export async function argumentsOf(pid: string): Promise<string> {
  // Gone since it was listed.
  return readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
}

/** How many processes of this host have this argument. */
export async function countWith(argument: string): Promise<number> {
  const lines = await Promise.all(hostPids().map(argumentsOf));
  return lines.filter((line) => line.split("\0").includes(argument)).length;
}

/** One row of a process's status; undefined when there is no such process. */
export function statusRow(pid: string, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
