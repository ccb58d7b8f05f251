import { messageOf } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import type { RunHead, Store } from "../store/index.js";

/** Milliseconds between two checks of runs on other replicas. */
const pollMs = 100;
/** Runs in one query: databases limit a statement's parameters. */
const maxIds = 1_000;

interface Watch {
  head: RunHead | undefined;
  readonly wake: Set<() => void>;
}

/** Polls the progress of runs on other replicas for readers, with one query for all of them. */
export class RemoteProgress {
  readonly #watched = new Map<string, Watch>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly store: Pick<Store, "heads">,
    readonly log: Log,
  ) {}

  /** Resolves when the run has more events than this, has ended, or is gone, or when the reader left. */
  beyond(id: string, event: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const watch = this.#watched.get(id) ?? { head: undefined, wake: new Set() };
      this.#watched.set(id, watch);
      const done = () => {
        watch.wake.delete(check);
        signal.removeEventListener("abort", done);
        if (watch.wake.size === 0) this.#watched.delete(id);
        resolve();
      };
      const check = () => {
        const { head } = watch;
        if (head === undefined || head.state === "ended" || head.events > event) done();
      };
      watch.wake.add(check);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
      this.#timer ??= setTimeout(() => void this.#poll(), pollMs);
    });
  }

  async #poll(): Promise<void> {
    try {
      const ids = [...this.#watched.keys()];
      const heads: RunHead[] = [];
      for (let first = 0; first < ids.length; first += maxIds)
        heads.push(...(await this.store.heads(ids.slice(first, first + maxIds))));
      const byId = new Map(heads.map((head) => [head.id, head]));
      for (const [id, watch] of [...this.#watched]) {
        watch.head = byId.get(id);
        for (const check of [...watch.wake]) check();
      }
    } catch (error) {
      this.log.warn({ error: messageOf(error) }, "the store could not be read: readers wait");
    }
    this.#timer = this.#watched.size === 0 ? undefined : setTimeout(() => void this.#poll(), pollMs);
  }
}
