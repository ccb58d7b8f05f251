import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { loopTurns } from "@ambit/core/plugin";
import { readBeginning } from "./read-beginning.js";
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
  let look: Look | undefined = "all";
  for (let round = 0; round < 50; round++) {
    const found = await findMarked(mark, options, look);
    look = nextLook(found);
    if (look === undefined) break;
    for (const pid of found.marked) {
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

/** The processes to look at: those with these numbers, or all. */
type Look = "all" | readonly number[];

interface Found {
  readonly marked: readonly number[];
  /** Processes that are just becoming another program, which show nothing until then. */
  readonly unknown: readonly number[];
}

/** Where to look again. Undefined: nowhere. A marked process may have started others since they were listed. Pure. */
export function nextLook({ marked, unknown }: Found): Look | undefined {
  if (marked.length > 0) return "all";
  return unknown.length > 0 ? unknown : undefined;
}

/** What reading one process costs, in the characters of {@link loopTurns}. */
const costOfOne = 2_048;

/** In turns of the event loop: a host may have thousands of processes. */
async function findMarked(mark: string, { group, since = 0 }: MarkedOptions, look: Look): Promise<Found> {
  if (process.platform !== "linux") return { marked: [], unknown: [] };
  const marker = markArgument(mark);
  const marked: number[] = [];
  const unknown: number[] = [];
  for (const pid of look === "all" ? readdirSync("/proc").map(Number) : look) {
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const turn = loopTurns.take(costOfOne);
    if (turn !== undefined) await turn;
    const stat = statOf(pid);
    if (stat === undefined || stat.state === "Z" || stat.started < since) continue;
    const seen = stat.group === group ? "marked" : markOn(pid, marker);
    if (seen === "marked") marked.push(pid);
    // Threads of the kernel are in no group, and never show anything.
    else if (seen === "unknown" && stat.group !== 0) unknown.push(pid);
  }
  return { marked, unknown };
}

/** During execve(2) a process has neither arguments nor environment: fs/proc/base.c reads both as empty. */
function markOn(pid: number, marker: string): "marked" | "unmarked" | "unknown" {
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
    const path = `/proc/${pid}/${file}`;
    return file === "stat" ? readBeginning(path) : readFileSync(path, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
