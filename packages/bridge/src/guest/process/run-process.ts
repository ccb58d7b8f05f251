import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { chown, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { killMessage, type Requests, requestOf } from "../../messages.js";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import { streams } from "../../transport/frame.js";
import type { Folders } from "../files/folders.js";
import { replyWithFailure } from "../reply-with-failure.js";
import type { DaemonSettings } from "../settings.js";
import type { Users } from "../users.js";
import { Output } from "./output.js";
import { type ProcessReaper, reapTree, reapUser } from "./process-reaper.js";

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
    const one = agent === undefined ? undefined : running.find(({ isAgent }) => isAgent);
    const counted = one === undefined ? running : [one, ...running.filter(({ isAgent }) => !isAgent)];
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
    await Promise.all([...this.#running].map((one) => one.end()));
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
    const own = join(this.#folders.processes, `${++this.#started}`);
    const scratch = join(own, "tmp");
    const home = isAgent ? this.#folders.home : join(own, "home");
    const clean = async () => {
      await rm(own, { recursive: true, force: true, maxRetries: 3 });
      await giveBack();
    };
    let begun: ProcessReaper | undefined;
    try {
      for (const path of isAgent ? [own, scratch] : [own, scratch, home]) {
        await mkdir(path, { mode: 0o700 });
        if (user !== undefined) await chown(path, user.uid, user.gid);
      }
      const [program = "", ...rest] = request.argv;
      const child = expendable(() =>
        spawn(program, rest, {
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
      const isAlone = () => ![...this.#running].some((one) => one.isAgent && one.pid !== pid);
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
  const own = killerScore();
  if (own === undefined) return start();
  setKillerScore("900");
  try {
    return start();
  } finally {
    setKillerScore(own);
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
