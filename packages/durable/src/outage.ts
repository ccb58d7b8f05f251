import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, StoreFailed } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";

const firstPauseMs = 50;
const longestPauseMs = 2_000;

/**
 * Does it again until it succeeds: a database that restarts, a disk that is full for a while.
 * @throws StoreFailed after `retryTimeoutMs`.
 */
export async function patiently<Result>(
  what: string,
  retryTimeoutMs: number,
  log: Log,
  act: () => Promise<Result>,
): Promise<Result> {
  const begun = performance.now();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await act();
    } catch (cause) {
      if (performance.now() - begun + pauseMs > retryTimeoutMs) {
        throw new StoreFailed(`The store could not ${what}; the runner's log has the cause.`, { cause });
      }
      log.warn({ error: messageOf(cause) }, `the store could not ${what}: trying again`);
      await sleep(pauseMs, undefined, { ref: false });
    }
  }
}
