import { setMaxListeners } from "node:events";
import { RunCancelled } from "../errors.js";
import type { Log, Scope } from "../plugin/index.js";

/** A scope whose close runs everything deferred, in reverse, whatever throws, within a time limit. */
export class OwnedScope implements Scope, AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #deferred: (() => void | Promise<void>)[] = [];
  #closing: Promise<void> | undefined;
  #unfollow: (() => void) | undefined;

  /**
   * @param limitMs for the whole close; what isn't closed by then is left to the reapers, and logged.
   * @param parent aborts this scope with its reason.
   */
  constructor(
    readonly log: Log,
    readonly limitMs: number,
    parent?: AbortSignal,
  ) {
    // One listener a tool call under way: many of them are no leak.
    setMaxListeners(0, this.#controller.signal);
    if (parent === undefined) return;
    const follow = () => this.abort(parent.reason);
    if (parent.aborted) follow();
    parent.addEventListener("abort", follow, { once: true });
    this.#unfollow = () => parent.removeEventListener("abort", follow);
  }

  /** Follows its parent no longer: what it owns is to outlive it. */
  detach(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Stops the work, and keeps what is open until `close`. The first reason stands. */
  abort(reason: unknown): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason);
  }

  defer(close: () => void | Promise<void>): void {
    // Whoever opens something while we close must not leave it behind.
    if (this.#closing !== undefined) this.#closing = this.#closing.then(() => this.#run(close));
    else this.#deferred.push(close);
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
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, this.limitMs, "late");
    });
    const all = (async () => {
      for (let close = this.#deferred.pop(); close !== undefined; close = this.#deferred.pop())
        await this.#run(close);
    })();
    const outcome = await Promise.race([all, limit]);
    clearTimeout(timer);
    if (outcome === "late") {
      this.log.error(
        { limitMs: this.limitMs, left: this.#deferred.length },
        "closing took too long; left to the reaper",
      );
    }
  }

  async #run(close: () => void | Promise<void>): Promise<void> {
    try {
      await close();
    } catch (error) {
      this.log.error({ error }, "closing failed");
    }
  }
}
