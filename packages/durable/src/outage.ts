import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, StoreFailed } from "@ambit/core";
import { type Log, unlessAborted } from "@ambit/core/plugin";

const firstPauseMs = 50;
const maxPauseMs = 2_000;

/**
 * Retries until it succeeds, for a database that restarts or a disk that is temporarily full. Logs the first failure, so
 * that many who wait don't fill the log.
 * @param signal of the one who waits: nothing is waited for or retried for a reader that has left.
 * @throws StoreFailed after `retryTimeoutMs`, or when the signal aborts.
 */
export async function retryWhileDown<Result>(
  what: string,
  retryTimeoutMs: number,
  log: Log,
  act: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const begun = performance.now();
  let hasFailed = false;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      return await (signal === undefined ? act() : unlessAborted(signal, act));
    } catch (cause) {
      if (signal?.aborted === true || performance.now() - begun + pauseMs > retryTimeoutMs) {
        // It says what is wrong, and what to do.
        if (cause instanceof StoreFailed) throw cause;
        throw new StoreFailed(`The store could not ${what}; the runner's log has the cause.`, { cause });
      }
      const message = `the store could not ${what}: trying again`;
      if (hasFailed) log.debug({ error: messageOf(cause) }, message);
      else log.warn({ error: messageOf(cause) }, message);
      hasFailed = true;
      await sleep(pauseMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }
}
