import { readdirSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { LineSplitter, SandboxFailed } from "@ambit/core/plugin";
import { signal } from "../../process/marked-processes.js";

/**
 * A process with its number on the host. For a jail, this is the first process of the pid namespace, which is the one
 * to kill: the kernel ends everything in the namespace with it. Killing bubblewrap instead leaves a zombie if the
 * runner is a container's first process.
 */
export interface HostProcess {
  readonly pid: number;
  /** Start time in ticks since boot: together with the number it identifies this process and no later one. */
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

/** A zombie has ended: the kernel leaves a namespace's first process as one when nothing else is left in it. */
export function hasEnded({ pid, startedAt }: HostProcess): boolean {
  const found = lookAt(pid);
  return found === undefined || found.startedAt !== startedAt || "ZX".includes(found.state);
}

/** More are counted as this many. */
const maxCounted = 1_000;

/** The number of processes that it and its children have started, and that live. */
export function descendants(target: HostProcess): number {
  if (hasEnded(target)) return 0;
  const found = childrenOf(target.pid);
  // Grows while it is read.
  for (const pid of found) {
    if (found.length >= maxCounted) break;
    found.push(...childrenOf(pid));
  }
  return found.filter((pid) => !hasEnded(hostProcess(pid))).length;
}

/** Each thread has a list of the processes that it has started. */
function childrenOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean).map(Number),
    );
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ESRCH";
}

function lookAt(pid: number): { state: string; startedAt: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Fields 3 and 22, counted after the program's name, which may contain any character.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", startedAt: fields[19] ?? "" };
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Bytes that a jail may send through its gate in all: a process number and one word. */
const maxSentBytes = 64;
/** Bytes of a failed launch's standard error that are kept. */
const maxBufferedBytes = 4096;

/**
 * Reads the lines that a jail sends through its gate. Variables of the payload can change what the jail's first program
 * does (`LD_PRELOAD`), so the amount is bounded.
 *
 * @throws SandboxFailed when it sends more than the lines of a gate.
 */
export async function* gateWords(gate: Readable): AsyncGenerator<string, undefined> {
  let sent = 0;
  const lines = new LineSplitter();
  for await (const chunk of gate as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > maxSentBytes) {
      throw new SandboxFailed("The jail's first program sent an unexpected message: nothing was run in it");
    }
    yield* lines.push(chunk);
  }
}

/** The first part of a stream; the rest is read and discarded, so that its writer can end. */
export async function beginningOf(stream: Readable | null): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes >= maxBufferedBytes) continue;
    const part = Buffer.from(chunk).subarray(0, maxBufferedBytes - bytes);
    bytes += part.length;
    kept.push(part);
  }
  return Buffer.concat(kept).toString();
}
