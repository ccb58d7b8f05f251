import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Duplex, Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type Evidence, LineSplitter, SandboxFailed } from "@ambit/core/plugin";
import type { LoopbackForward } from "../../claims.js";
import { endProcess, type HostProcess, hostProcess, killMarked } from "../../process/host-processes.js";
import { beginningOf, descriptorTable, startChild } from "../../process/start-child.js";
import {
  type Expected,
  isGuarded,
  type JailInfo,
  jailInfoSchema,
  judge,
  misplacedMounts,
  type Namespaces,
  type ProcessStatus,
  statusOf,
} from "../evidence.js";
import type { SessionParts } from "../session.js";
import type { CommandLine, RelocatedMount, WorkspaceMount } from "./arguments.js";
import { inside } from "./inside.js";

/** A jail's own way out, by its relay: `native/relay.c`. */
export interface WayOut {
  readonly forwards: readonly LoopbackForward[];
  /** Whether it also lets the runner's connections in. */
  readonly isInbound: boolean;
}

/**
 * The jail's first program, which is process 1 of its pid namespace. When the payload ends, everything left in the jail
 * ends with process 1, and bubblewrap reaps it. (bubblewrap's own process 1 would outlive bubblewrap if the runner is a
 * container's first process and doesn't reap orphans.)
 *
 * Its child reports its process number in the jail (so that the runner can inspect it while the relay starts), then
 * that everything is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does.
 * The runner then closes its end: the descriptor that the first process keeps leads nowhere.
 */
export function gateScript(wayOut: WayOut | undefined): string {
  return [
    // The runner's mark, visible on the host only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell reports a child that ended by a signal; standard error belongs to the payload.
    "exec 4>&2 2>/dev/null",
    "(",
    "exec 2>&4 4>&-",
    "read -r _ambit _ambit_rest </proc/self/stat",
    'echo "$_ambit" >&3',
    ...(wayOut === undefined ? [] : [startRelay(wayOut)]),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

/**
 * Starts the relay in a shell of its own, so that the payload gets no child that it didn't start. The relay is a static program
 * that reads no variable. It says `up` on descriptor 4, and closes that, once all its ports listen.
 */
function startRelay({ forwards, isInbound }: WayOut): string {
  const targets = [...forwards.map(authority), ...(isInbound ? ["inbound"] : [])];
  const command = [inside.relayProgram, ...targets].join(" ");
  return `[ "$(exec </dev/null 3>&-; ${command} 4>&1 >/dev/null 2>&1 &)" = up ] || { echo relay >&3; exit 126; }`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** What has to happen between the runner and bubblewrap. */
interface Stages {
  /** bubblewrap's whole command line. */
  readonly jail: readonly string[];
  /** Descriptors of the session's cgroups, which it adds itself to before anything else starts; one digit each. */
  readonly groups: readonly number[];
  /** Mounts that only this process and its children see. Needs root. */
  readonly relocatedMounts: readonly RelocatedMount[];
  /**
   * The session's user, switched to before bubblewrap starts: as uid 0, bubblewrap isn't a sandbox. Undefined if the
   * runner is that user already.
   */
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
}

/** A program to start, and its user. */
export interface Launch {
  readonly argv: readonly [program: string, ...args: string[]];
  readonly user: Stages["user"];
}

/** A shell that fails to write says why. The descriptors are closed: nothing of the jail has them. */
const joining = (groups: readonly number[]) => [
  ...groups.map((group) => `echo 0 >&${group} || exit 125`),
  `exec ${groups.map((group) => `${group}>&-`).join(" ")}`,
];

/** The command that the runner starts. Pure. */
export function launchOf({ jail, groups, relocatedMounts, user }: Stages): Launch {
  if (relocatedMounts.length > 0 && user !== undefined) {
    const { uid, gid } = user;
    const drop = [
      "setpriv",
      "--reuid",
      String(uid),
      "--regid",
      String(gid),
      "--clear-groups",
      "--no-new-privs",
      "--",
    ];
    const script = [
      ...(groups.length > 0 ? joining(groups) : []),
      'while [ "$1" != "--" ]; do mount --bind -- "$1" "$2" || exit 124; shift 2; done; shift',
      'exec "$@"',
    ].join("\n");
    const mounts = relocatedMounts.flatMap(({ source, place }) => [source, place]);
    const shell = ["/bin/sh", "-c", script, "sh", ...mounts, "--"];
    return {
      argv: ["unshare", "--mount", "--propagation", "private", "--", ...shell, ...drop, ...jail],
      user: undefined,
    };
  }
  const joined = () => ["/bin/sh", "-c", [...joining(groups), 'exec "$@"'].join("\n"), "sh", ...jail];
  const [program, ...args] = groups.length > 0 ? joined() : jail;
  if (program === undefined) throw new RangeError("A jail needs a program to start");
  return { argv: [program, ...args], user };
}

/** Numbers of the descriptors that every launch has; further ones follow. A shell reads the groups', of one digit. */
export const jailDescriptors = {
  /** Connects the runner with the jail's first program; closed before the payload starts. */
  gate: 3,
  groups: [4, 5, 6],
  info: 7,
  arguments: 8,
  seccomp: 9,
} as const;

/**
 * The number of the descriptor from which a bubblewrap reads its arguments.
 *
 * @param index 0 for the first one.
 * @param given how many descriptors `LaunchOptions.descriptors` has.
 */
export function argumentsDescriptor(index: number, given: number): number {
  return index === 0 ? jailDescriptors.arguments : jailDescriptors.seccomp + given + index - 1;
}

interface LaunchOptions {
  readonly launch: Launch;
  /** For `--args` of each bubblewrap. */
  readonly commandLines: readonly CommandLine[];
  /** What the last one mounts in the workspace. */
  readonly workspaceMounts: readonly WorkspaceMount[];
  /** Open descriptors for numbers from `jailDescriptors.seccomp` on. */
  readonly descriptors: readonly number[];
  readonly devNull: number;
  /** Descriptors that the launcher would inherit from the runner's parent. They are closed. */
  readonly inheritable: readonly number[];
  readonly expected: Expected;
  /** Called for each difference between the jail and its plan. It may throw it. */
  readonly refuse: SessionParts["refuse"];
  readonly runnerNamespaces: Namespaces;
  /** For messages: the payload's program. */
  readonly program: string;
  /** Time limit for the start of a jail, in milliseconds. */
  readonly startMs: number;
  /** On the command line of bubblewrap, of the programs before it, and of the jail's first process. */
  readonly mark: string;
  /** Of the session; undefined when nothing is limited. */
  readonly groups: LaunchGroups | undefined;
  /** Removes from a message what a caller must not learn. */
  readonly conceal: (words: string) => string;
  readonly signal: AbortSignal | undefined;
}

interface LaunchGroups {
  /** Open descriptors for the numbers of `jailDescriptors.groups`, through which the first stage adds itself. */
  readonly descriptors: readonly number[];
  /** Whether a process is in all of them. @param membership its `/proc/<pid>/cgroup`. */
  include(membership: string): boolean;
}

export interface Launched {
  readonly child: ChildProcess;
  readonly init: HostProcess;
  readonly payload: HostProcess;
  readonly evidence: Evidence;
}

/**
 * Starts a jail, inspects it, and lets the payload begin.
 *
 * @throws SandboxFailed when it doesn't come up, or differs from the plan; nothing of it remains then.
 */
export async function launchJail(options: LaunchOptions): Promise<Launched> {
  const { launch, signal } = options;
  signal?.throwIfAborted();
  const planned = [
    ...(["pipe", "pipe", "pipe", "pipe"] as const),
    ...jailDescriptors.groups.map(
      (_number, index) => options.groups?.descriptors[index] ?? ("ignore" as const),
    ),
    ...(["pipe", "pipe"] as const),
    ...options.descriptors,
    ...options.commandLines.slice(1).map(() => "pipe" as const),
  ];
  const [program, ...args] = launch.argv;
  const child = await startChild(program, args, {
    // No variable of the runner's: bubblewrap's environment is that of a process of the jail.
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    },
    cwd: "/",
    // In a new session: signals from a terminal or supervisor to the runner's group must not reach the jails. The
    // runner ends them itself after their runs had time to finish.
    detached: true,
    stdio: [...descriptorTable(planned, options.inheritable, options.devNull)],
    ...(launch.user ?? {}),
  });
  const stop = () => child.kill("SIGKILL");
  // A bubblewrap that is killed this early may leave processes that hold its pipes open, which then don't end.
  let giveUp = () => {};
  const givenUp = new Promise<never>((_resolve, reject) => {
    giveUp = () => {
      stop();
      reject(new SandboxFailed(`The jail didn't start within ${options.startMs} ms`));
    };
  });
  const timer = setTimeout(giveUp, options.startMs);
  const release = keepUnread([pipeAt(child, jailDescriptors.gate), child.stderr]);
  signal?.addEventListener("abort", giveUp, { once: true });
  if (signal?.aborted) giveUp();
  try {
    return await Promise.race([inspectJail(child, options), givenUp]);
  } catch (error) {
    stop();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    // bubblewrap's child asks to end with bubblewrap only some time after its start; killed before that, bubblewrap
    // leaves it behind.
    for (const pipe of child.stdio) pipe?.destroy();
    await killMarked(options.mark);
    throw signal?.aborted ? (signal.reason ?? error) : error;
  } finally {
    clearTimeout(timer);
    release();
    signal?.removeEventListener("abort", giveUp);
  }
}

/** When a child ends, Node discards what its pipes hold, except of a pipe that has a listener: the reason of a failure. */
function keepUnread(pipes: readonly (Readable | null)[]): () => void {
  const onReadable = () => undefined;
  for (const pipe of pipes) pipe?.on("readable", onReadable);
  return () => {
    for (const pipe of pipes) pipe?.off("readable", onReadable);
  };
}

async function inspectJail(child: ChildProcess, options: LaunchOptions): Promise<Launched> {
  const gate = pipeAt(child, jailDescriptors.gate);
  const info = pipeAt(child, jailDescriptors.info);
  const given = options.commandLines.map((line, index) => {
    return { line, pipe: pipeAt(child, argumentsDescriptor(index, options.descriptors.length)) };
  });
  // A failed launch closes these; its own message is the reason, not a broken pipe.
  for (const pipe of [gate, info, ...given.map(({ pipe: one }) => one)]) pipe.on("error", () => undefined);
  for (const { line, pipe } of given) pipe.end(line.map((argument) => `${argument}\0`).join(""));

  const words = gateWords(gate);
  const next = async () => (await words.next()).value;
  const json = await beginningOf(info);
  const number = await next();
  if (number === undefined || !/^\d+$/.test(number)) throw await explain(child, options, number);
  const jail: JailInfo = jailInfoSchema.parse(JSON.parse(json));
  const init = hostProcess(jail["child-pid"]);
  try {
    const { payload, evidence } = await look(jail, Number(number), options);
    const word = await next();
    if (word !== "up") throw await explain(child, options, word);
    // Closed as well: what the jail's processes write into it from now on is discarded.
    gate.end("\n", () => gate.destroy());
    return { child, init, payload, evidence };
  } catch (error) {
    endProcess(init);
    throw error;
  }
}

/** Checks the program that becomes the payload, and the jail's first program, which starts it. */
async function look(
  jail: JailInfo,
  number: number,
  { runnerNamespaces, expected, refuse, commandLines, workspaceMounts, groups }: LaunchOptions,
): Promise<{ payload: HostProcess; evidence: Evidence }> {
  const init = jail["child-pid"];
  // The second bubblewrap is the init of its jail. No process in there can reach it: its user namespace is another one.
  const first = commandLines.length > 1 ? childOf(init, () => true) : init;
  const payload = childOf(first, (status) => status.numbers.at(-1) === number);
  const refuseJail = (difference: SandboxFailed) => refuse(difference, "jail");
  judge(jail, await filteredStatus(first, expected), runnerNamespaces, expected, refuseJail);
  if (!isGuarded(first, expected)) {
    refuse(
      new SandboxFailed(
        "The jail's first process can be changed by its payload, so nothing was started in it: set fs.suid_dumpable to 0 or 2",
      ),
      "first process",
    );
  }
  // What the first stage started is in the same groups, this program among it.
  if (groups !== undefined && !groups.include(readFileSync(`/proc/${payload}/cgroup`, "latin1"))) {
    refuseJail(
      new SandboxFailed(
        "The jail isn't as planned, so nothing was started in it: its limits don't hold for it",
      ),
    );
  }
  const misplaced =
    workspaceMounts.length === 0
      ? []
      : misplacedMounts(readFileSync(`/proc/${payload}/mountinfo`, "latin1"), workspaceMounts);
  if (misplaced.length > 0) {
    refuseJail(
      new SandboxFailed(
        `The jail isn't as planned, so nothing was started in it: a path of its workspace was exchanged (${misplaced.join(", ")})`,
        { concerns: "session" },
      ),
    );
  }
  return {
    payload: hostProcess(payload),
    evidence: judge(jail, statusOf(payload), runnerNamespaces, expected, refuseJail),
  };
}

/** The jail's first program already runs while its filter is loaded, so this waits for it. */
async function filteredStatus(first: number, expected: Expected): Promise<ProcessStatus> {
  for (let tries = 0; ; tries++) {
    const status = statusOf(first);
    if (expected.seccomp === undefined || status.seccomp === expected.seccomp || tries === 500) return status;
    await delay(1);
  }
}

/** The number on the host of the first child that is the one looked for. */
function childOf(parent: number, isIt: (status: ProcessStatus) => boolean): number {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, "latin1")
    .trim()
    .split(" ")
    .map(Number);
  for (const child of children) {
    const status = statusOf(child);
    if (status.parent === parent && isIt(status)) return child;
  }
  throw new SandboxFailed("The jail's first program can't be found among its processes");
}

async function explain(
  child: ChildProcess,
  options: LaunchOptions,
  word: string | undefined,
): Promise<SandboxFailed> {
  if (word === "missing") {
    return new SandboxFailed(
      `${options.program} can't be started: it isn't there, inside the sandbox (ENOENT)`,
      { concerns: "session" },
    );
  }
  if (word === "relay") {
    return new SandboxFailed(
      "The jail's relay doesn't listen: raise the session's limits of processes and memory",
    );
  }
  return inItsOwnWords(child, options);
}

/** Only bubblewrap and the stages before it have written to standard error so far. */
async function inItsOwnWords(
  child: ChildProcess,
  { startMs, conceal }: LaunchOptions,
): Promise<SandboxFailed> {
  const words = (await beginningOf(child.stderr)).trim();
  if (words !== "") {
    return new SandboxFailed(`The jail can't be opened: ${conceal(words)}`, {
      cause: words,
      // The command's own folder, which the session may have closed or removed.
      concerns: words.includes("Can't chdir") ? "session" : "host",
    });
  }
  return new SandboxFailed(`The jail didn't start (${startMs} ms at most), and gave no reason`);
}

function pipeAt(child: ChildProcess, index: number): Duplex {
  const pipe = child.stdio[index];
  if (pipe === null || pipe === undefined || !("write" in pipe) || !("read" in pipe)) {
    throw new SandboxFailed(`A jail was started without its pipe ${index}`);
  }
  return pipe as Duplex;
}

/** Bytes that a jail may send through its gate in all: a process number and one word. */
const maxSentBytes = 64;

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
