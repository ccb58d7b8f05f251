/** How long a run may act: its scope, which closes what it opened, its time limits, its right to act, its pause. */

import { RunCancelled, RunTimedOut } from "@ambit/core";
import {
  type LateStart,
  type Log,
  newPluginAbort,
  resultWithin,
  type Scope,
  unlessAborted,
} from "@ambit/core/plugin";
import type { RunLimits } from "../limits.js";

/** A scope whose close runs everything deferred, in reverse, within a time limit, even if something throws or hangs. */
export class OwnedScope implements Scope, AsyncDisposable {
  readonly #controller = newPluginAbort();
  readonly #deferred: (() => void | Promise<void>)[] = [];
  #closing: Promise<void> | undefined;
  #unfollow: (() => void) | undefined;
  #unclean = false;

  /**
   * @param limitMs for the whole close; what isn't closed by then is left to the reapers, and logged.
   * @param parent aborts this scope with its reason.
   */
  constructor(
    readonly log: Log,
    readonly limitMs: number,
    parent?: AbortSignal,
  ) {
    if (parent === undefined) return;
    const follow = () => this.abort(parent.reason);
    if (parent.aborted) follow();
    parent.addEventListener("abort", follow, { once: true });
    this.#unfollow = () => parent.removeEventListener("abort", follow);
  }

  /** Stops following its parent, so that what it owns can outlive the parent. */
  detach(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether something threw or hung when it was closed, and may still exist. */
  get unclean(): boolean {
    return this.#unclean;
  }

  /** Aborts the work; what is open stays open until `close`. The first reason counts. */
  abort(reason: unknown): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason);
  }

  defer(close: () => void | Promise<void>): void {
    if (this.#closing === undefined) {
      this.#deferred.push(close);
      return;
    }
    // What is opened while the scope closes is closed too.
    const late = settlesWithin(this.#run(close), this.limitMs);
    this.#closing = Promise.all([this.#closing, late]).then(() => undefined);
  }

  close(): Promise<void> {
    this.detach();
    this.abort(new RunCancelled("The run has ended."));
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #closeAll(): Promise<void> {
    const end = performance.now() + this.limitMs;
    const hung: Promise<void>[] = [];
    for (let close = this.#deferred.pop(); close !== undefined; close = this.#deferred.pop()) {
      const closed = this.#run(close);
      // Each step gets half of the remaining time, so that one that hangs leaves time for those opened before it.
      if (await settlesWithin(closed, (end - performance.now()) / 2)) continue;
      this.#unclean = true;
      hung.push(closed);
    }
    if (hung.length === 0 || (await settlesWithin(Promise.all(hung), end - performance.now()))) return;
    const fields = { limitMs: this.limitMs, left: hung.length };
    this.log.error(fields, "closing took too long; the reaper handles the rest");
  }

  async #run(close: () => void | Promise<void>): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.#unclean = true;
      this.log.error({ error }, "closing failed");
    }
  }
}

/**
 * An abort controller that follows several signals and can stop following them: `AbortSignal.any` keeps long-lived ones
 * alive.
 */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #release: (() => void)[] = [];

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) {
      const follow = () => this.abort(source.reason);
      if (source.aborted) follow();
      source.addEventListener("abort", follow, { once: true });
      this.#release.push(() => source.removeEventListener("abort", follow));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
  }

  after(milliseconds: number, reason: () => unknown): void {
    const timer = setTimeout(() => this.abort(reason()), milliseconds);
    this.#release.push(() => clearTimeout(timer));
  }

  [Symbol.dispose](): void {
    for (const release of this.#release.splice(0)) release();
  }
}

/** Resolves when the signal aborts, or immediately when it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Whether the promise, which must not reject, settles within the given milliseconds. */
export async function settlesWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  return (
    (await resultWithin(
      promise.then(() => true),
      milliseconds,
    )) ?? false
  );
}

/** The step's result. Once the signal aborts, the step has a limited time left to return it. */
export async function settledWithin<Result>(
  signal: AbortSignal,
  graceMs: number,
  step: () => Promise<Result>,
): Promise<Result> {
  using overdue = new LinkedAbort();
  const begin = () => overdue.after(graceMs, () => signal.reason);
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  try {
    return await unlessAborted(overdue.signal, step);
  } finally {
    signal.removeEventListener("abort", begin);
  }
}

/** The run's time limits. Each aborts the scope with a reason when it expires; none outlives the scope. */
export class Deadlines {
  #idle: NodeJS.Timeout | undefined;
  #firstResponse: NodeJS.Timeout | undefined;
  #holds = 0;
  /** The name of a tool call without a result. Its command may be silent for long. */
  #openCall: string | undefined;
  #prompted = false;
  #over = false;
  /** Whether the idle timer was already reset for the current batch of events. */
  #isFresh = false;

  constructor(
    readonly scope: OwnedScope,
    readonly limits: RunLimits,
  ) {}

  /** Starts the limit of the whole run. */
  admitted(): void {
    const { scope, limits } = this;
    const total = this.#arm(limits.runTimeoutMs, `The run took longer than ${seconds(limits.runTimeoutMs)}.`);
    scope.signal.addEventListener("abort", () => {
      // A call that ends late must not restart a timer.
      this.#over = true;
      for (const timer of [total, this.#idle, this.#firstResponse]) clearTimeout(timer);
    });
  }

  /**
   * Limits one step of the start: opening the sandbox, publishing the tools, starting the agent.
   *
   * @param step gets a function for a part of it that has a time limit of its own.
   * @param hint added to the message of a step that takes too long. Default: none.
   * @param why looked up when it has taken too long. Default: nothing is known.
   */
  async starting<Result>(
    what: string,
    step: (untimed: <Part>(part: () => Promise<Part>) => Promise<Part>) => Promise<Result>,
    hint = "",
    why: () => LateStart | undefined = () => undefined,
  ): Promise<Result> {
    const { startMs } = this.limits;
    const end = () => {
      const { sentence, retryable } = why() ?? { sentence: "", retryable: true };
      const message = `${what} took longer than ${seconds(startMs)}.${hint} ${sentence}`;
      this.scope.abort(new RunTimedOut(message.trimEnd(), { retryable }));
    };
    const arm = () => setTimeout(end, startMs);
    let timer = arm();
    try {
      return await step(async (part) => {
        clearTimeout(timer);
        try {
          return await part();
        } finally {
          timer = arm();
        }
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Starts the limit for the agent's first event. */
  prompted(): void {
    this.#prompted = true;
    const message = `The agent sent nothing within ${seconds(this.limits.firstResponseMs)} of the prompt.`;
    if (!this.#over) this.#firstResponse = this.#arm(this.limits.firstResponseMs, message);
  }

  /** The agent did something: resets the idle timer, once per batch of events. */
  recordActivity(): void {
    if (!this.#prompted || this.#isFresh) return;
    this.#isFresh = true;
    process.nextTick(() => {
      this.#isFresh = false;
    });
    clearTimeout(this.#firstResponse);
    if (this.#idle !== undefined) this.#idle.refresh();
    else this.#startIdle();
  }

  /**
   * Sets the limit that applies while the agent is silent: `agentCallIdleMs` as long as a call has no result, else `idleMs`.
   * @param name of such a call; undefined if there is none.
   */
  setOpenCall(name: string | undefined): void {
    const isSameLimit = (name === undefined) === (this.#openCall === undefined);
    this.#openCall = name;
    if (isSameLimit || this.#idle === undefined) return;
    clearTimeout(this.#idle);
    this.#startIdle();
  }

  /**
   * The agent waits for the runner: for a tool call, which has its own limit, or for a slow reader. The idle timer is
   * stopped until the returned function is called.
   */
  hold(): () => void {
    this.#holds += 1;
    clearTimeout(this.#idle);
    clearTimeout(this.#firstResponse);
    this.#idle = undefined;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holds -= 1;
      this.#startIdle();
    };
  }

  #startIdle(): void {
    if (this.#over || this.#holds > 0) return;
    const { idleMs, agentCallIdleMs } = this.limits;
    const name = this.#openCall;
    this.#idle =
      name === undefined
        ? this.#arm(idleMs, `The agent did nothing for ${seconds(idleMs)} (limits.idleMs).`)
        : this.#arm(
            agentCallIdleMs,
            `The agent's tool call '${name}' had no result, and the agent sent nothing, for ${seconds(agentCallIdleMs)} (limits.agentCallIdleMs).`,
          );
  }

  #arm(milliseconds: number, message: string): NodeJS.Timeout {
    return setTimeout(() => this.scope.abort(new RunTimedOut(message)), milliseconds);
  }
}

function seconds(milliseconds: number): string {
  return `${milliseconds / 1_000} s`;
}

/** A recorder's hold on a run that another process may take over. */
export interface RunHold {
  /** Increases with each owner of the run. */
  readonly fence: number;
  /** Whether the run is certainly still this process's. */
  readonly isCurrent: boolean;
  /** Resolves once it is. @throws the signal's reason */
  confirmed(signal: AbortSignal): Promise<void>;
}

/** Whether a run may act: always, unless its recorder holds it for a limited time. */
export class RightToAct {
  hold: RunHold | undefined;

  get isCurrent(): boolean {
    return this.hold?.isCurrent ?? true;
  }

  /** Called before each act outside this process. @throws the signal's reason */
  async confirmed(signal: AbortSignal): Promise<void> {
    await this.hold?.confirmed(signal);
  }
}

/** Created once: `abort()` without a reason creates an error with its stack each time. */
const pausing = new Error("The turn pauses for its user.");

/**
 * Whether the turn waits for its user. From `begin` on, no question is held open; the calls that are allowed finish. Then
 * the pause takes effect: the turn ends, without an answer to the agent.
 */
export class Pause {
  readonly #begun = new AbortController();
  readonly #effect = new AbortController();

  /** Aborts when the turn begins to pause. */
  get begun(): AbortSignal {
    return this.#begun.signal;
  }

  /** Aborts when the turn ends for its user: nothing more is executed. */
  get effect(): AbortSignal {
    return this.#effect.signal;
  }

  get isPaused(): boolean {
    return this.begun.aborted;
  }

  get isInEffect(): boolean {
    return this.effect.aborted;
  }

  begin(): void {
    this.#begun.abort(pausing);
  }

  takeEffect(): void {
    this.begin();
    this.#effect.abort(pausing);
  }
}
