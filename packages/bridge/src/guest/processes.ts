import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { chown, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { type DaemonSettings, killMessage, type Requests, requestOf } from "../messages.js";
import { type Channel, type ChannelListener, OutputPump, replyWithFailure } from "../transport/channels.js";
import { type StreamId, streams } from "../transport/transport.js";
import type { Folders } from "./files.js";
import { startAs, type User, type Users } from "./users.js";

type PipedChild = ChildProcessByStdio<Writable, Readable, Readable>;

/** All processes that the runner requested. */
export class Processes {
  readonly #settings: DaemonSettings;
  readonly #folders: Folders;
  readonly #users: Users;
  readonly #running = new Set<RunningProcess>();
  readonly #starting = new Set<Promise<RunningProcess>>();
  #started = 0;
  #isEnding = false;

  constructor(settings: DaemonSettings, folders: Folders, users: Users) {
    this.#settings = settings;
    this.#folders = folders;
    this.#users = users;
  }

  /** The handlers of a channel of kind `run`. */
  listen(channel: Channel): ChannelListener {
    const input: { bytes: Uint8Array; taken: () => void }[] = [];
    let hasEnded = false;
    let running: RunningProcess | undefined;
    /** Signals that arrived before the process was started. */
    let early: "SIGTERM" | "SIGKILL" | undefined;
    const feed = () => {
      if (running === undefined) return;
      for (const { bytes, taken } of input.splice(0)) running.feed(bytes, taken);
      if (hasEnded) running.endInput();
    };
    const begin = async (request: Requests["run"]) => {
      running = await this.#begin(request, channel);
      // The runner may have abandoned it before it was started.
      if (channel.isClosed) early = "SIGKILL";
      if (early !== undefined) running.kill(early);
      feed();
    };
    return {
      message: (message) => {
        const order = killMessage(message);
        if (order !== undefined) {
          if (running === undefined) early = order.kill;
          else running.kill(order.kill);
          return;
        }
        replyWithFailure(channel, () => begin(requestOf("run", message)));
      },
      data: (_lane, bytes, taken) => {
        if (running === undefined) input.push({ bytes, taken });
        else running.feed(bytes, taken);
      },
      end: () => {
        hasEnded = true;
        feed();
      },
      closed: () => running?.kill("SIGKILL"),
    };
  }

  /** The number of live processes. Those of the agents' user are counted once. */
  count(): number {
    const { agent } = this.#users;
    const running = [...this.#running];
    const agentProcess = agent === undefined ? undefined : running.find(({ isAgent }) => isAgent);
    const counted =
      agentProcess === undefined ? running : [agentProcess, ...running.filter(({ isAgent }) => !isAgent)];
    return counted.reduce((sum, each) => sum + each.count(), 0);
  }

  /** Accepts new processes again. */
  allow(): void {
    this.#isEnding = false;
  }

  /** Ends all processes, and accepts no new ones. */
  async endAll(): Promise<void> {
    this.#isEnding = true;
    await Promise.allSettled(this.#starting);
    await Promise.all([...this.#running].map((running) => running.end()));
  }

  async #begin(request: Requests["run"], channel: Channel): Promise<RunningProcess> {
    if (this.#isEnding) throw new Error("The sandbox closes");
    const starting = this.#start(request, channel);
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async #start(request: Requests["run"], channel: Channel): Promise<RunningProcess> {
    const isAgent = request.role === "agent";
    const { user, giveBack } = isAgent
      ? { user: this.#users.agent, giveBack: () => Promise.resolve() }
      : this.#users.take();
    const folder = join(this.#folders.processes, `${++this.#started}`);
    const scratch = join(folder, "tmp");
    const home = isAgent ? this.#folders.home : join(folder, "home");
    const clean = async () => {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await giveBack();
    };
    let begun: ProcessReaper | undefined;
    try {
      for (const path of isAgent ? [folder, scratch] : [folder, scratch, home]) {
        await mkdir(path, { mode: 0o700 });
        if (user !== undefined) await chown(path, user.uid, user.gid);
      }
      const [program = "", ...args] = request.argv;
      const child = expendable(() =>
        spawn(program, args, {
          cwd: request.cwd ?? (this.#settings.workspace === "none" ? scratch : this.#folders.workspace),
          env: { ...request.env, HOME: home, TMPDIR: scratch },
          stdio: ["pipe", "pipe", "pipe"],
          // A separate session, detached from the bridge's terminal, if there is one.
          detached: true,
          ...(user === undefined ? {} : user),
        }),
      );
      const pid = await pidOf(child);
      const tree = reapTree(pid);
      const all = user === undefined ? tree : reapUser(user);
      // Agents share a user: only when the last one ends, everything that the user runs is ended.
      const isAlone = () => ![...this.#running].some((running) => running.isAgent && running.pid !== pid);
      const reaper: ProcessReaper = isAgent
        ? {
            count: () => all.count(),
            signal: (name) => (isAlone() ? all : tree).signal(name),
            finish: () => (isAlone() ? all : tree).finish(),
          }
        : all;
      begun = reaper;
      const running = new RunningProcess(child, pid, isAgent, reaper, channel, async () => {
        this.#running.delete(running);
        await clean();
      });
      this.#running.add(running);
      await channel.send({ started: { pid, uid: user?.uid ?? process.getuid?.() ?? -1 } });
      return running;
    } catch (error) {
      await begun?.finish();
      await clean();
      throw error;
    }
  }
}

class RunningProcess {
  readonly #child: PipedChild;
  readonly #reaper: ProcessReaper;
  /** After that, its pid and user id may be reused. */
  #isGone = false;

  constructor(
    child: PipedChild,
    readonly pid: number,
    readonly isAgent: boolean,
    reaper: ProcessReaper,
    channel: Channel,
    onEnded: () => Promise<void>,
  ) {
    this.#child = child;
    this.#reaper = reaper;
    // Data for a process that has ended is lost, as with any pipe.
    child.stdin.on("error", () => undefined);
    const outputs = [
      new Output(child.stdout, channel, streams.main),
      new Output(child.stderr, channel, streams.error),
    ];
    child.once("exit", (code, signal) =>
      replyWithFailure(channel, async () => {
        await reaper.finish();
        this.#isGone = true;
        // Cleaned up first, so that nothing is left when the exit is reported.
        await onEnded();
        // Its output may wait for a reader, which may wait for the exit.
        await channel.send({ exit: { code, signal } });
        await Promise.all(outputs.map((output) => output.drained()));
        channel.close();
      }),
    );
  }

  feed(bytes: Uint8Array, taken: () => void): void {
    const { stdin } = this.#child;
    if (stdin.destroyed) taken();
    else stdin.write(bytes, () => taken());
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  /** SIGKILL is repeated until none is left: a single one can miss a process that is just being created. */
  kill(signal: "SIGTERM" | "SIGKILL"): void {
    if (!this.#isGone) void (signal === "SIGKILL" ? this.#reaper.finish() : this.#reaper.signal(signal));
  }

  count(): number {
    return this.#isGone ? 0 : this.#reaper.count();
  }

  async end(): Promise<void> {
    if (!this.#isGone) await this.#reaper.finish();
  }
}

/**
 * If memory runs out, the kernel should end the run's processes, not this daemon. A new process has that from its first
 * moment, since it inherits the score of this one, which then returns to its own. Best effort: not possible everywhere.
 */
function expendable<Child>(start: () => Child): Child {
  const score = killerScore();
  if (score === undefined) return start();
  setKillerScore("900");
  try {
    return start();
  } finally {
    setKillerScore(score);
  }
}

const killerScoreFile = "/proc/self/oom_score_adj";

function killerScore(): string | undefined {
  try {
    return readFileSync(killerScoreFile, "latin1");
  } catch {
    return undefined;
  }
}

function setKillerScore(score: string): void {
  try {
    writeFileSync(killerScoreFile, score);
  } catch {
    // Not every kernel or sandbox allows it.
  }
}

function pidOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => resolve(child.pid ?? -1));
  });
}

/** Milliseconds without output after which a pipe of an ended process is abandoned. */
const idleMs = 500;

/** Sends a process's whole output, at the pace of its reader. */
export class Output {
  readonly #source: Readable;
  readonly #outputPump: OutputPump;
  readonly #done: Promise<void>;

  constructor(source: Readable, channel: Channel, stream: StreamId) {
    this.#source = source;
    this.#outputPump = new OutputPump(source, channel, stream);
    this.#done = this.#end(channel, stream);
  }

  /** Everything that the process wrote before its end. A child that inherited the pipe may hold it open forever. */
  async drained(): Promise<void> {
    let pieces = -1;
    const watch = setInterval(() => {
      if (this.#outputPump.isIdle && pieces === this.#outputPump.pieces) this.#source.destroy();
      pieces = this.#outputPump.pieces;
    }, idleMs);
    await this.#done;
    clearInterval(watch);
  }

  async #end(channel: Channel, stream: StreamId): Promise<void> {
    await new Promise<void>((resolve) => {
      // Abandoned above, or the pipe broke: in both cases the output is complete.
      this.#source.on("error", () => undefined);
      for (const over of ["end", "close"]) this.#source.once(over, resolve);
    });
    await this.#outputPump.sent();
    channel.end(stream);
  }
}

/** Ends a process and everything that it started. */
interface ProcessReaper {
  /** Never rejects: `finish` ends processes that this misses. */
  signal(name: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Settles when none of them is left. */
  finish(): Promise<void>;
  /** How many of them live. */
  count(): number;
}

/** All processes of one user, which none can escape by forking. */
function reapUser(user: User): ProcessReaper {
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
function reapTree(pid: number): ProcessReaper {
  const family = new Set<number>([pid]);
  const members = () => {
    const all = allProcesses();
    for (let grown = true; grown; ) {
      grown = false;
      for (const member of all) {
        if (family.has(member.pid) || !(family.has(member.parent) || member.session === pid)) continue;
        family.add(member.pid);
        grown = true;
      }
    }
    return all.filter((member) => family.has(member.pid) && member.pid !== process.pid);
  };
  const signal = (name: "SIGTERM" | "SIGKILL") => {
    for (const member of members()) kill(member.pid, name);
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
