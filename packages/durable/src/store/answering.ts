import { isAmbitError, messageOf, StoreFailed } from "@ambit/core";
import { type Log, unlessAborted } from "@ambit/core/plugin";
import type { Store } from "./store.js";

/**
 * Asks the store for a caller who waits for the answer.
 * @throws StoreFailed when it fails, or doesn't answer in time
 */
export async function askStore<Result>(
  timeoutMs: number,
  log: Log,
  ask: () => Promise<Result>,
): Promise<Result> {
  try {
    return await unlessAborted(AbortSignal.timeout(timeoutMs), ask);
  } catch (cause) {
    if (isAmbitError(cause) && !(cause instanceof StoreFailed)) throw cause;
    log.warn({ error: messageOf(cause) }, "the store doesn't answer: a caller gets 503");
    if (cause instanceof StoreFailed) throw cause;
    throw new StoreFailed(
      "The store can't be reached, or is full: try again; the runner's log has the cause.",
      {
        cause,
      },
    );
  }
}

/** The store for requests of callers: each of its methods answers in time, or rejects with StoreFailed. */
export function answering(store: Store, timeoutMs: number, log: Log): Store {
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...given: readonly unknown[]) =>
        askStore(timeoutMs, log, async () => Reflect.apply(method, target, given));
    },
  });
}
