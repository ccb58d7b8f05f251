import { RunCancelled } from "@ambit/core";
import { type Log, newPluginAbort, type Scope, unlessAborted } from "@ambit/core/plugin";

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
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, milliseconds), false);
  });
  try {
    return await Promise.race([promise.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
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
