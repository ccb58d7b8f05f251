import type { Log } from "@ambit/core/plugin";

/** A call that is being executed. Disposed when it is answered. */
export interface CallInFlight extends Disposable {
  /** Aborts when the agent cancels the call, leaves, or the publication is closed. */
  readonly signal: AbortSignal;
}

interface Open {
  readonly controller: AbortController;
  hangUp(): void;
}

/**
 * The calls of one publication, by the agent's request id. The endpoint keeps no session, so a cancellation arrives
 * as a separate request and must find its call here.
 */
export class CallsInFlight {
  readonly #byId = new Map<string | number, Set<Open>>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * @param disconnected aborts when the agent's connection ends.
   * @param hangUp ends the response to the call without an answer.
   */
  begin(id: string | number, disconnected: AbortSignal, hangUp: () => void): CallInFlight {
    const controller = new AbortController();
    const open = { controller, hangUp };
    const leave = () => controller.abort(disconnected.reason);
    if (disconnected.aborted) leave();
    disconnected.addEventListener("abort", leave, { once: true });
    const same = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, same.add(open));
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        disconnected.removeEventListener("abort", leave);
        same.delete(open);
        if (same.size === 0) this.#byId.delete(id);
      },
    };
  }

  /**
   * Some agents cancel an answered call: an unknown id is ignored. A cancelled call gets no answer: some agents take one
   * for a fault of the connection, and forget the server's tools (Qwen Code).
   */
  cancel(id: string | number | undefined): void {
    if (id === undefined) return;
    const [only, another] = this.#byId.get(id) ?? [];
    if (another !== undefined) {
      // Two connections of the agent may use the same ids; ending the wrong call would be worse than ending none.
      this.#log.debug({ id }, "a cancellation names more than one call and is ignored");
      return;
    }
    only?.hangUp();
    only?.controller.abort(new Error("the agent cancelled the call"));
  }

  close(): void {
    for (const calls of this.#byId.values()) {
      for (const { controller } of calls) controller.abort(new Error("the run no longer serves its tools"));
    }
  }
}
