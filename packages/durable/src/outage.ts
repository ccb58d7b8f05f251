import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, StoreFailed } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";

const firstPauseMs = 50;
const maxPauseMs = 2_000;

/**
 * Retries until it succeeds, for a database that restarts or a disk that is temporarily full.
 * @throws StoreFailed after `retryTimeoutMs`.
 */
export async function patiently<Result>(
  what: string,
  retryTimeoutMs: number,
  log: Log,
  act: () => Promise<Result>,
): Promise<Result> {
  const begun = performance.now();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
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
