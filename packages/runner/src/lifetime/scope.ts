import { RunCancelled } from "@ambit/core";
import { type Log, newPluginAbort, type Scope } from "@ambit/core/plugin";
import { settlesWithin } from "./linked-abort.js";

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
