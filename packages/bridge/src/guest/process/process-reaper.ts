import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { startAs } from "../run-as.js";
import type { User } from "../user.js";

/** Ends a process and everything that it started. */
export interface ProcessReaper {
  /** Never rejects: `finish` ends processes that this misses. */
  signal(name: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Settles when none of them is left. */
  finish(): Promise<void>;
  /** How many of them live. */
  count(): number;
}

/** All processes of one user, which none can escape by forking. */
export function reapUser(user: User): ProcessReaper {
  const signal = (name: "SIGTERM" | "SIGKILL") =>
    // As that user, `-1` means every process that it may signal, in one call, so that no fork escapes.
    startAs(user, 'kill "-$0" -1', name === "SIGTERM" ? "TERM" : "KILL", () => {
      // No further process can be started: kills them one by one until one can.
      for (const pid of processesOf(user.uid)) kill(pid, name);
    });
  return {
    signal,
    count: () => processesOf(user.uid).length,
    finish: () =>
      until(
        () => processesOf(user.uid).length === 0,
        () => signal("SIGKILL"),
      ),
  };
}

/** If users are shared: the descendants of the process, and what stays in its session. */
export function reapTree(pid: number): ProcessReaper {
  const family = new Set<number>([pid]);
  const members = () => {
    const all = allProcesses();
    for (let grown = true; grown; ) {
      grown = false;
      for (const one of all) {
        if (family.has(one.pid) || !(family.has(one.parent) || one.session === pid)) continue;
        family.add(one.pid);
        grown = true;
      }
    }
    return all.filter((one) => family.has(one.pid) && one.pid !== process.pid);
  };
  const signal = (name: "SIGTERM" | "SIGKILL") => {
    for (const one of members()) kill(one.pid, name);
    return Promise.resolve();
  };
  return {
    signal,
    count: () => members().length,
    finish: () =>
      until(
        () => members().length === 0,
        () => signal("SIGKILL"),
      ),
  };
}

async function until(isDone: () => boolean, again: () => Promise<void>): Promise<void> {
  for (let wait = 1; !isDone(); wait = Math.min(wait * 2, 200)) {
    await again();
    if (isDone()) return;
    await after(wait);
  }
}

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
}

function allProcesses(): readonly Seen[] {
  return processIds().flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`);
    // pid (name, which may hold anything) state parent group session
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields === undefined || fields[0] === "Z" || fields[0] === "X") return [];
    return [{ pid, parent: Number(fields[1]), session: Number(fields[3]) }];
  });
}

function processesOf(uid: number): readonly number[] {
  return processIds().filter((pid) => {
    const status = read(`/proc/${pid}/status`);
    if (status === undefined || /^State:\s+[ZX]/m.test(status)) return false;
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid;
  });
}

function processIds(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Undefined if it has ended. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function kill(pid: number, name: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended, or we may not signal it; `finish` then waits for its end.
    const isKnown =
      error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM");
    if (!isKnown) throw error;
  }
}
