import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { signal } from "./signal.js";

/** Identifies the process's origin in its environment, which its descendants inherit even if they detach. */
export const markerVariable = "AMBIT_SANDBOX";

/**
 * The same as an argument, for jails: another user's environment can't be read without CAP_SYS_PTRACE, which root in a
 * container doesn't have, but its command line can.
 */
export function markArgument(mark: string): string {
  return `${markerVariable}=${mark}`;
}

/** A process's mark: the runner's key, the sandbox's id, and a number for each spawn. */
export function markOf(runnerKey: string, sandboxId = "", spawned?: number): string {
  return `${runnerKey}/${sandboxId}${sandboxId === "" ? "" : "/"}${spawned === undefined ? "" : `${spawned}/`}`;
}

export interface MarkedOptions {
  /** Also the processes of this process group. */
  readonly group?: number;
  /**
   * How often none must be found. A process that is just becoming another program shows no mark: check again if
   * something was interrupted. Default: once.
   */
  readonly looks?: number;
  /** In the unit of `startOf`: processes that started earlier are skipped unread. Default: none are. */
  readonly since?: number | undefined;
}

/**
 * Kills every process whose mark begins with this, until none is found. In an unconfined run, a process that drops its
 * environment and leaves its group escapes this. Without a pid namespace that can't be prevented, and nothing is
 * claimed.
 *
 * @returns how many were killed.
 */
export async function killMarked(mark: string, options: MarkedOptions = {}): Promise<number> {
  const { looks = 1 } = options;
  const killed = new Set<number>();
  for (let round = 0, inVain = 0; round < 50; round++) {
    const found = findMarked(mark, options);
    if (found.length === 0 && ++inVain >= looks) break;
    for (const pid of found) {
      killed.add(pid);
      signal(pid, "SIGKILL");
    }
    // A killed one is gone in a moment; one that shows no mark yet takes longer.
    await delay(found.length > 0 ? Math.min(10, 1 + round) : 10);
  }
  return killed.size;
}

/** When a process started, in the kernel's ticks; no descendant is older. Undefined when it is gone. */
export function startOf(pid: number): number | undefined {
  return statOf(pid)?.started;
}

function findMarked(mark: string, { group, since = 0 }: MarkedOptions): readonly number[] {
  if (process.platform !== "linux") return [];
  const marker = markArgument(mark);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      if (pid === process.pid) return false;
      const stat = statOf(pid);
      if (stat === undefined || stat.started < since) return false;
      return (stat.group === group && stat.state !== "Z") || isMarked(pid, marker);
    });
}

function isMarked(pid: number, marker: string): boolean {
  return (["environ", "cmdline"] as const).some((file) => {
    const text = readProcess(pid, file);
    return text.startsWith(marker) || text.includes(`\0${marker}`);
  });
}

interface Stat {
  readonly state: string | undefined;
  readonly group: number;
  readonly started: number;
}

/** Fields 3, 5 and 22 of proc(5)'s stat. */
function statOf(pid: number): Stat | undefined {
  const stat = readProcess(pid, "stat");
  if (stat === "") return undefined;
  // The second field is the program's name in parentheses, and may contain any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0], group: Number(fields[2]), started: Number(fields[19]) };
}

/** Empty for a process that is gone, or another user's: neither belongs to this runner. */
function readProcess(pid: number, file: "environ" | "cmdline" | "stat"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error) return "";
    throw error;
  }
}
