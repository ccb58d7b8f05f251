import { unlessAborted } from "@ambit/core/plugin";
import type { Lookup } from "../guarded-lookup.js";

/**
 * One session's lookups. The host's resolver has few threads, which all sessions and the file system share, so that a
 * session which asks for names whose servers don't answer would keep all others from theirs: a few run at once, and
 * requests for one name share one.
 */
export class Lookups {
  readonly #lookup: Lookup;
  readonly #limit: number;
  readonly #running = new Map<string, Promise<readonly string[]>>();
  /** In order; each looks again whether it may begin. */
  readonly #waiting = new Set<() => void>();

  constructor(lookup: Lookup, limit: number) {
    this.#lookup = lookup;
    this.#limit = limit;
  }

  /** Rejects like the lookup, or with the signal's reason: a lookup that hasn't begun then never does. */
  async resolve(name: string, signal: AbortSignal): Promise<readonly string[]> {
    while (!signal.aborted && !this.#running.has(name) && this.#running.size >= this.#limit) {
      await this.#turn(signal);
    }
    const running = signal.aborted ? undefined : (this.#running.get(name) ?? this.#begin(name));
    this.#wake();
    return await unlessAborted(signal, async () => running ?? []);
  }

  #begin(name: string): Promise<readonly string[]> {
    const running = this.#lookup(name);
    this.#running.set(name, running);
    // Even if no request waits any longer: a lookup can't be cancelled, and has its thread until it ends.
    const end = () => {
      this.#running.delete(name);
      this.#wake();
    };
    running.then(end, end);
    return running;
  }

  #wake(): void {
    const [next] = this.#waiting;
    if (this.#running.size < this.#limit) next?.();
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        this.#waiting.delete(go);
        signal.removeEventListener("abort", go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener("abort", go, { once: true });
    });
  }
}
