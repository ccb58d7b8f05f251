import { isAmbitError, messageOf, StoreFailed } from "@ambit/core";
import { type Log, unlessAborted } from "@ambit/core/plugin";
import pRetry from "p-retry";
import type { Store } from "./store.js";

/** Milliseconds between two attempts: at first, doubled each time, and at most. */
const pauseMs = { first: 50, max: 2_000 } as const;

/**
 * Retries until it succeeds, for a database that restarts or a disk that is temporarily full. Logs the first failure, so
 * that many who wait don't fill the log.
 * @param signal of the one who waits: nothing is waited for or retried for a reader that has left.
 * @throws StoreFailed after `retryTimeoutMs`, when the signal aborts, and at once for a TypeError, which is a fault of the store.
 */
export async function retryWhileDown<Result>(
  what: string,
  retryTimeoutMs: number,
  log: Log,
  act: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  try {
    return await pRetry(() => (signal === undefined ? act() : unlessAborted(signal, act)), {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: pauseMs.first,
      maxTimeout: pauseMs.max,
      maxRetryTime: retryTimeoutMs,
      unref: true,
      ...(signal === undefined ? {} : { signal }),
      shouldRetry: ({ error, attemptNumber }) => {
        if (signal?.aborted === true) return false;
        const message = `the store could not ${what}: trying again`;
        log[attemptNumber === 1 ? "warn" : "debug"]({ error: messageOf(error) }, message);
        return true;
      },
    });
  } catch (cause) {
    // It says what is wrong, and what to do.
    if (cause instanceof StoreFailed) throw cause;
    throw new StoreFailed(`The store could not ${what}; the runner's log has the cause.`, { cause });
  }
}

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
      return (...parameters: readonly unknown[]) =>
        askStore(timeoutMs, log, async () => Reflect.apply(method, target, parameters));
    },
  });
}
