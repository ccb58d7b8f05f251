import { readFileSync } from "node:fs";
import { signal } from "../../process/signal.js";

/**
 * A process as the host numbers it. Of a jail it is the first one of the pid namespace that is ended: the kernel
 * ends everything in the namespace with it. Ending bubblewrap instead leaves a zombie behind where the runner is a
 * container's first process.
 */
export interface HostProcess {
  readonly pid: number;
  /** Ticks since boot: with the number, names this process and no later one. */
  readonly startedAt: string;
}

export function hostProcess(pid: number): HostProcess {
  return { pid, startedAt: lookAt(pid)?.startedAt ?? "gone" };
}

export function endProcess(target: HostProcess): void {
  signalProcess(target, "SIGKILL");
}

export function signalProcess(target: HostProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (!hasEnded(target)) signal(target.pid, name);
}

/** A zombie has ended: of a namespace's first process, the kernel makes one when nothing else is left in it. */
export function hasEnded({ pid, startedAt }: HostProcess): boolean {
  const found = lookAt(pid);
  return found === undefined || found.startedAt !== startedAt || "ZX".includes(found.state);
}

function lookAt(pid: number): { state: string; startedAt: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Fields 3 and 22; counted after the program's name, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", startedAt: fields[19] ?? "" };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}
