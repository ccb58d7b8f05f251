/** Processes of this host: how one is started, how those of a run are found, and how they are ended. */

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { basename } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, codeOf, type Process, SandboxFailed } from "@ambit/core/plugin";

/** @throws SandboxFailed for arguments or a folder that no program can be started with. */
export function checkCommand({ argv, cwd }: Command): void {
  if (argv.some((argument) => argument.includes("\0"))) {
    throw ofCommand("A program's argument must not contain NUL");
  }
  if (cwd !== undefined && !cwd.startsWith("/")) {
    throw ofCommand(`A program's folder must be an absolute path, but is ${JSON.stringify(cwd)}`);
  }
}

/**
 * @param concerns the capabilities that a failed start disproves: none, if the command names the program.
 * @throws SandboxFailed naming the program, whether the system throws the error or reports it as an event.
 */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  concerns: "host" | "session" = "host",
): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, options);
    await once(child, "spawn");
    return child;
  } catch (error) {
    const code = codeOf(error);
    const why = code === "E2BIG" ? "its arguments and variables are too long (E2BIG)" : (code ?? "unknown");
    const message = `${basename(program)} can't be started: ${why}`;
    throw code === "E2BIG"
      ? ofCommand(message, error)
      : new SandboxFailed(message, { cause: error, concerns });
  }
}

function ofCommand(message: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(message, { cause, concerns: "session" });
}

/** A started program's three pipes as streams. */
export function pipesOf({
  stdin,
  stdout,
  stderr,
}: ChildProcess): Pick<Process, "stdin" | "stdout" | "stderr"> {
  if (stdin === null || stdout === null || stderr === null) {
    throw new SandboxFailed("A process was started without its three pipes");
  }
  return { stdin: writableOf(stdin), stdout: readableOf(stdout), stderr: readableOf(stderr) };
}

/** Pulled one chunk at a time: unread output stays in the pipe and slows its writer instead of filling memory. */
function readableOf(source: Readable): ReadableStream<Uint8Array> {
  // When the process exits, Node discards what a pipe without a listener still holds.
  source.on("readable", () => undefined);
  const chunks = source.iterator({ destroyOnReturn: true });
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.once("error", (error) => controller.error(error));
      },
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done === true) controller.close();
          else controller.enqueue(new Uint8Array(next.value));
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => {
        source.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Each write settles when the pipe took it; if its reader is gone the write fails, never the runner. */
function writableOf(target: Writable): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      target.on("error", (error) => controller.error(error));
      target.on("close", () => controller.error(new Error("The process no longer reads its standard input")));
    },
    write: (chunk) =>
      new Promise<void>((resolve, reject) => {
        target.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    close: () =>
      new Promise<void>((resolve) => {
        // A pipe whose reader is gone never calls back, and closes at most once.
        if (target.destroyed) return resolve();
        target.once("close", resolve);
        target.end(resolve);
      }),
    abort: () => {
      target.destroy();
    },
  });
}

const closeOnExec = 0o2000000;

/**
 * Descriptors of this process that a child would inherit: neither Node nor bubblewrap closes those that the runner's
 * parent left open. Read again for each spawn.
 */
export function inheritableDescriptors(): readonly number[] {
  if (process.platform !== "linux") return [];
  const descriptors = readdirSync("/proc/self/fdinfo").map(Number);
  return descriptors.filter((descriptor) => descriptor > 2 && isInheritable(descriptor));
}

function isInheritable(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readBeginning(`/proc/self/fdinfo/${descriptor}`))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch (error) {
    // The listing's own descriptor is closed by now; so may be any other.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

/**
 * What a child gets at each number: the planned descriptor, `/dev/null` over every other one that it would inherit (where
 * `ignore` is planned, too), and nothing at the rest.
 */
export function descriptorTable<Planned>(
  planned: readonly Planned[],
  inheritable: readonly number[],
  devNull: number,
): readonly (Planned | number | "ignore")[] {
  const table: (Planned | number | "ignore")[] = [...planned];
  for (const descriptor of inheritable) {
    if (descriptor < planned.length && planned[descriptor] !== "ignore") continue;
    while (table.length < descriptor) table.push("ignore");
    table[descriptor] = devNull;
  }
  return table;
}

/** Bytes of a failed launch's standard error that are kept. */
const maxBufferedBytes = 4096;

/** The first part of a stream; the rest is read and discarded, so that its writer can end. */
export async function beginningOf(stream: Readable | null): Promise<string> {
  const beginning: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes >= maxBufferedBytes) continue;
    const part = Buffer.from(chunk).subarray(0, maxBufferedBytes - bytes);
    bytes += part.length;
    beginning.push(part);
  }
  return Buffer.concat(beginning).toString();
}

const beginning = Buffer.alloc(2_048);

/** The first 2 KiB of a short file in `/proc`, in latin1: fewer system calls, and no memory, for files read by the hundred. */
function readBeginning(path: string): string {
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

/** One mount as a process sees it. */
export interface Mount {
  /** Major and minor number of the file system. */
  readonly device: string;
  /** The folder or file of that file system which is mounted. */
  readonly root: string;
  readonly path: string;
  readonly isReadOnly: boolean;
}

/** Reads the text of a process's `mountinfo` in `/proc`, in latin1: paths are bytes. A later mount of a path covers earlier ones. */
export function parseMounts(text: string): readonly Mount[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [, , device = "", root = "", path = "", options = ""] = line.split(" ");
      const isReadOnly = options.split(",").includes("ro");
      return { device, root: decoded(root), path: decoded(path), isReadOnly };
    });
}

/** The kernel writes blanks and backslashes in paths as octal numbers. */
function decoded(path: string): string {
  const bytes = path.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  return Buffer.from(bytes, "latin1").toString();
}
