import { messageOf } from "@ambit/core";
import type { ReadyResponse } from "./route-schemas.js";
import type { ServerContext } from "./server-context.js";

/** Milliseconds that an answer of the store counts for all callers: the route needs no token. */
const keptMs = 1_000;

/** Whether the server takes runs now: it doesn't shut down, and its store answers. */
export class Readiness {
  #asked: { readonly at: number; readonly answer: Promise<ReadyResponse["store"]> } | undefined;

  constructor(readonly context: Pick<ServerContext, "served" | "log" | "isDraining">) {}

  async look(): Promise<ReadyResponse> {
    const store = await this.#store();
    const { isDraining } = this.context;
    if (isDraining()) return { status: "draining", store };
    return { status: store === "unreachable" ? "unavailable" : "ready", store };
  }

  #store(): Promise<ReadyResponse["store"]> {
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
