/** A request's time limit in milliseconds, or the signal that ends it. */
export function signalWithin(limitMs: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(limitMs);
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

/** The same until the response begins: what follows is a stream that may be long, and silent. */
export async function firstByteWithin<Answer>(
  limitMs: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const [request, limit] = [new AbortController(), signalWithin(limitMs, signal)];
  limit.throwIfAborted();
  const stop = () => request.abort(limit.reason);
  limit.addEventListener("abort", stop, { once: true });
  try {
    return await ask(request.signal);
  } finally {
    limit.removeEventListener("abort", stop);
  }
}

/** Whether a request's own limit ended it. */
export function isLate(error: unknown): boolean {
  const both = [error, error instanceof Error ? error.cause : undefined];
  return both.some((one) => one instanceof DOMException && one.name === "TimeoutError");
}
