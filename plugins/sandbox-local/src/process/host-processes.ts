import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf } from "@ambit/core/plugin";

const beginning = Buffer.alloc(2_048);

/** The first 2 KiB of a short file in `/proc`, in latin1: fewer system calls, and no memory, for files read by the hundred. */
export function readBeginning(path: string): string {
  const file = openSync(path, "r");
  try {
    return beginning.toString("latin1", 0, readSync(file, beginning, 0, beginning.length, 0));
  } finally {
    closeSync(file);
  }
}

/** @param target a process, or a group as a negative number. One that is already gone is fine. */
export function signal(target: number, name: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(target, name);
  } catch (error) {
    const code = codeOf(error);
    // EPERM: macOS answers so for a zombie.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/**
 * Ids of the sessions (setsid(2)) that this runner's unconfined processes lead, as long as one of their processes may
 * live: a program started without its environment shows no mark, but is still in its session.
 */
export const ownSessions = new Set<number>();

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

interface MarkedOptions {
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
    const marked = findMarked(mark, options, look);
    look = nextLook(marked);
    if (look === undefined) break;
    for (const pid of marked.marked) {
      killed.add(pid);
      signal(pid, "SIGKILL");
    }
    await delay(Math.min(10, 1 + round));
  }
  return killed.size;
}

/** When a process started, in the kernel's ticks; no descendant is older. Undefined when it is gone. */
export function startOf(pid: number): number | undefined {
  return readStat(pid)?.started;
}

/** The processes to look at: those with these numbers, or all. */
type Look = "all" | readonly number[];

interface MarkedProcesses {
  readonly marked: readonly number[];
  /** Processes that are just becoming another program, which show nothing until then. */
  readonly unknown: readonly number[];
}

/** Where to look again. Undefined: nowhere. A marked process may have started others since they were listed. Pure. */
export function nextLook({ marked, unknown }: MarkedProcesses): Look | undefined {
  if (marked.length > 0) return "all";
  return unknown.length > 0 ? unknown : undefined;
}

function findMarked(mark: string, { group, since = 0 }: MarkedOptions, look: Look): MarkedProcesses {
  if (process.platform !== "linux") return { marked: [], unknown: [] };
  const marker = markArgument(mark);
  const marked: number[] = [];
  const unknown: number[] = [];
  for (const pid of look === "all" ? readdirSync("/proc").map(Number) : look) {
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = readStat(pid);
    if (stat === undefined || stat.state === "Z" || stat.started < since || stat.isKernelThread) continue;
    const seen = stat.group === group ? "marked" : markOn(pid, marker);
    if (seen === "marked") marked.push(pid);
    else if (seen === "unknown") unknown.push(pid);
  }
  return { marked, unknown };
}

/** During execve(2) a process has neither arguments nor environment: fs/proc/base.c reads both as empty. */
export function markOn(pid: number, marker: string): "marked" | "unmarked" | "unknown" {
  const isMarked = (text: string) => text.startsWith(marker) || text.includes(`\0${marker}`);
  const environment = readProcess(pid, "environ");
  const command = readProcess(pid, "cmdline");
  if (isMarked(environment ?? "") || isMarked(command ?? "")) return "marked";
  if (command === "") return "unknown";
  // It may have become another program between the two reads.
  if (environment === "" && readStat(pid)?.environmentBytes !== 0) return "unknown";
  return "unmarked";
}

/** What proc(5) calls a process's status. */
interface Stat {
  readonly state: string | undefined;
  readonly parent: number;
  /** 0 for a group of an outer pid namespace. */
  readonly group: number;
  readonly session: number;
  /** In the kernel's ticks. */
  readonly started: number;
  /** It never has arguments or an environment. */
  readonly isKernelThread: boolean;
  /** Undefined during execve(2), and for a process that this one may not trace. */
  readonly environmentBytes: number | undefined;
}

/** `PF_KTHREAD` of the kernel's include/linux/sched.h. */
const kernelThread = 0x0020_0000;

/** The text of `/proc/<pid>/stat`. Pure. */
export function parseStat(text: string): Stat {
  // The second field is the program's name in parentheses, and may contain any character.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  /** By its number in proc(5). */
  const field = (number: number) => Number(fields[number - 3]);
  const environmentEnd = field(51);
  return {
    state: fields[0],
    parent: field(4),
    group: field(5),
    session: field(6),
    started: field(22),
    isKernelThread: (field(9) & kernelThread) !== 0,
    environmentBytes: environmentEnd === 0 ? undefined : environmentEnd - field(50),
  };
}

const readStatOf = (pid: number | "self"): Stat => parseStat(readBeginning(`/proc/${pid}/stat`));

/** Undefined for a process that is gone, or that this one may not look at. */
export const readStat = (pid: number | "self"): Stat | undefined => unlessClosed(() => readStatOf(pid));

const readProcess = (pid: number, file: "environ" | "cmdline"): string | undefined =>
  unlessClosed(() => readFileSync(`/proc/${pid}/${file}`, "latin1"));

/** Undefined for a process that is gone, or another user's: neither belongs to this runner. */
function unlessClosed<Read>(read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}

/**
 * A process with its number on the host. For a jail, this is the first process of the pid namespace, which is the one
 * to kill: the kernel ends everything in the namespace with it. Killing bubblewrap instead leaves a zombie if the
 * runner is a container's first process.
 */
export interface HostProcess {
  readonly pid: number;
  /**
   * Start time in ticks since boot: together with the number it identifies this process and no later one. Undefined: it was
   * gone already.
   */
  readonly startedAt: number | undefined;
}

/** @throws Error where this process may not read that one's status */
export function hostProcess(pid: number): HostProcess {
  return { pid, startedAt: unlessGone(() => readStatOf(pid))?.started };
}

export function endProcess(target: HostProcess): void {
  signalProcess(target, "SIGKILL");
}

export function signalProcess(target: HostProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (!hasEnded(target)) signal(target.pid, name);
}

/** A zombie has ended: the kernel leaves a namespace's first process as one when nothing else is left in it. */
export function hasEnded({ pid, startedAt }: HostProcess): boolean {
  const stat = unlessGone(() => readStatOf(pid));
  return stat === undefined || stat.started !== startedAt || "ZX".includes(stat.state ?? "");
}

/** More are counted as this many. */
const maxCounted = 1_000;

/** The number of processes that it and its children have started, and that live. */
export function descendants(target: HostProcess): number {
  if (hasEnded(target)) return 0;
  const pids = childrenOf(target.pid);
  // Grows while it is read.
  for (const pid of pids) {
    if (pids.length >= maxCounted) break;
    pids.push(...childrenOf(pid));
  }
  return pids.filter((pid) => !hasEnded(hostProcess(pid))).length;
}

/** Each thread has a list of the processes that it has started. */
function childrenOf(pid: number): number[] {
  const children = unlessGone(() =>
    readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean).map(Number),
    ),
  );
  return children ?? [];
}

/** Undefined where the process has ended. */
function unlessGone<Read>(read: () => Read): Read | undefined {
  try {
    return read();
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}
