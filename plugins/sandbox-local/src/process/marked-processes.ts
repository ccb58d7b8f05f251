import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { loopTurns } from "@ambit/core/plugin";
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
  const killed = new Set<number>();
  for (let round = 0; round < 50; round++) {
    const { marked, unknown } = await findMarked(mark, options);
    if (marked.length === 0 && unknown === 0) break;
    for (const pid of marked) {
      killed.add(pid);
      signal(pid, "SIGKILL");
    }
    await delay(Math.min(10, 1 + round));
  }
  return killed.size;
}

/** When a process started, in the kernel's ticks; no descendant is older. Undefined when it is gone. */
export function startOf(pid: number): number | undefined {
  return statOf(pid)?.started;
}

interface Found {
  readonly marked: readonly number[];
  /** The number of processes that are just becoming another program, which show nothing until then. */
  readonly unknown: number;
}

/** What reading one process costs, in the characters of {@link loopTurns}. */
const costOfOne = 2_048;

/** In turns of the event loop: a host may have thousands of processes. */
async function findMarked(mark: string, { group, since = 0 }: MarkedOptions): Promise<Found> {
  if (process.platform !== "linux") return { marked: [], unknown: 0 };
  const marker = markArgument(mark);
  const marked: number[] = [];
  let unknown = 0;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const turn = loopTurns.take(costOfOne);
    if (turn !== undefined) await turn;
    const stat = statOf(pid);
    if (stat === undefined || stat.state === "Z" || stat.started < since) continue;
    const seen = stat.group === group ? "marked" : look(pid, marker);
    if (seen === "marked") marked.push(pid);
    // Threads of the kernel are in no group, and never show anything.
    else if (seen === "unknown" && stat.group !== 0) unknown += 1;
  }
  return { marked, unknown };
}

/** During execve(2) a process has neither arguments nor environment: fs/proc/base.c reads both as empty. */
function look(pid: number, marker: string): "marked" | "unmarked" | "unknown" {
  const isMarked = (text: string) => text.startsWith(marker) || text.includes(`\0${marker}`);
  const environment = readProcess(pid, "environ");
  const command = readProcess(pid, "cmdline");
  if (isMarked(environment ?? "") || isMarked(command ?? "")) return "marked";
  if (command === "") return "unknown";
  // It may have become another program between the two reads.
  if (environment === "" && isMarked(readProcess(pid, "environ") ?? "")) return "marked";
  return "unmarked";
}

interface Stat {
  readonly state: string | undefined;
  readonly group: number;
  readonly started: number;
}

/** Fields 3, 5 and 22 of proc(5)'s stat. */
function statOf(pid: number): Stat | undefined {
  const stat = readProcess(pid, "stat");
  if (stat === undefined) return undefined;
  // The second field is the program's name in parentheses, and may contain any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0], group: Number(fields[2]), started: Number(fields[19]) };
}

/** Undefined for a process that is gone, or another user's: neither belongs to this runner. */
function readProcess(pid: number, file: "environ" | "cmdline" | "stat"): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
