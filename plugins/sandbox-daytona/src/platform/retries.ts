import pRetry from "p-retry";
import { isPassing, ServiceFailure } from "./failure.js";

export interface RetryOptions {
  /** Tries after the first. */
  readonly retries: number;
  /** Milliseconds for all tries, including the waits. */
  readonly limitMs: number;
  readonly signal?: AbortSignal;
}

/** Milliseconds between two tries: at first, and at most. */
const retryDelaysMs = { first: 250, max: 10_000 } as const;
/** Milliseconds that must remain for another try: with less it would fail for lack of time. */
const minAttemptMs = 1_000;

/**
 * Repeats a call after a temporary failure, so only for idempotent calls. Waits as long as the platform
 * asks for, unless that is longer than the remaining time.
 *
 * @throws ServiceFailure the last failure; if that was only the time limit, the one before it.
 */
export async function withRetries<Result>(
  call: () => Promise<Result>,
  { retries, limitMs, signal }: RetryOptions,
  isSafe: (failure: ServiceFailure) => boolean = isPassing,
): Promise<Result> {
  const end = performance.now() + limitMs;
  let telling: ServiceFailure | undefined;
  return pRetry(
    async () => {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ServiceFailure)) throw error;
        const isOver = error.kind === "timeout" && performance.now() + minAttemptMs >= end;
        if (isOver && telling !== undefined) throw telling;
        telling = error;
        throw error;
      }
    },
    {
      retries,
      // All waiting happens below, limited to the remaining time.
      minTimeout: 0,
      maxTimeout: 0,
      ...(signal === undefined ? {} : { signal }),
      shouldRetry: async ({ error, attemptNumber }) => {
        if (!(error instanceof ServiceFailure) || !isSafe(error)) return false;
        const pause = Math.max(error.retryAfterMs ?? 0, delayBefore(attemptNumber));
        if (performance.now() + pause + minAttemptMs >= end) return false;
        await pauseFor(pause, signal);
        return signal?.aborted !== true;
      },
    },
  );
}

/** Doubles each time, with as much jitter again: clients that failed together don't retry together. */
function delayBefore(attempt: number): number {
  return Math.min(retryDelaysMs.first * 2 ** (attempt - 1) * (1 + Math.random()), retryDelaysMs.max);
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
