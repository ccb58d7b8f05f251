import pRetry from "p-retry";
import { isPassing, ServiceFailure } from "./failure.js";

export interface Patience {
  /** Tries after the first. */
  readonly retries: number;
  /** Milliseconds for all of it, waiting included. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
}

const longestPause = 10_000;

/**
 * Tries again what failed in passing: only for calls that may be made twice. Waits as long as the platform asks for,
 * unless that is longer than what is left.
 *
 * @throws ServiceFailure the last one.
 */
export async function withPatience<Result>(
  call: () => Promise<Result>,
  { retries, limitMs, signal }: Patience,
  isSafe: (failure: ServiceFailure) => boolean = isPassing,
): Promise<Result> {
  const end = performance.now() + limitMs;
  return pRetry(call, {
    retries,
    minTimeout: 250,
    maxTimeout: longestPause,
    randomize: true,
    ...(signal === undefined ? {} : { signal }),
    shouldRetry: async ({ error }) => {
      if (!(error instanceof ServiceFailure) || !isSafe(error)) return false;
      const pause = error.retryAfterMs ?? 0;
      if (performance.now() + pause >= end) return false;
      await pauseFor(pause, signal);
      return signal?.aborted !== true;
    },
  });
}

/** Resolves early when `signal` aborts. */
export function pauseFor(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (milliseconds <= 0 || signal?.aborted === true) return resolve();
    const over = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    signal?.addEventListener("abort", over, { once: true });
  });
}
