import { type Log, messageOf } from "@ambit/core";
import type { Recording } from "../../recording.js";
import type { ReadyResponse } from "../route-schemas.js";

/** Milliseconds that an answer of the store counts for all callers: the route needs no token. */
const keptMs = 1_000;

export interface ReadinessContext {
  readonly log: Log;
  /** Resolves once the store is open, if one is loaded. @throws StoreFailed when it can't be opened */
  served(): Promise<Pick<Recording, "runs" | "isStored">>;
  /** Whether the server is shutting down. */
  isDraining(): boolean;
}

/** Whether the server takes runs now: it has started, doesn't shut down, and its store answers. */
export class Readiness {
  #asked: { readonly at: number; readonly answer: Promise<ReadyResponse["store"]> } | undefined;
  #store: ReadyResponse["store"] = "opening";

  constructor(readonly context: ReadinessContext) {
    const opened = () => {
      if (this.#store === "opening") this.#store = "unreachable";
    };
    context.served().then(opened, opened);
  }

  async look(): Promise<ReadyResponse> {
    const { isDraining } = this.context;
    // Neither an opening store nor one that hangs delays the answer that decides already.
    if (this.#store !== "opening" && !isDraining()) this.#store = await this.#askedStore();
    const store = this.#store;
    if (isDraining()) return { status: "draining", store };
    if (store === "opening") return { status: "starting", store };
    return { status: store === "unreachable" ? "unavailable" : "ready", store };
  }

  #askedStore(): Promise<ReadyResponse["store"]> {
    const now = performance.now();
    if (this.#asked === undefined || now - this.#asked.at > keptMs)
      this.#asked = { at: now, answer: this.#askStore() };
    return this.#asked.answer;
  }

  async #askStore(): Promise<ReadyResponse["store"]> {
    const { served, log } = this.context;
    try {
      const { runs, isStored } = await served();
      if (!isStored) return "none";
      await runs.store.heads([""]);
      return "reachable";
    } catch (error) {
      log.debug({ error: messageOf(error) }, "not ready: the store can't be reached");
      return "unreachable";
    }
  }
}
