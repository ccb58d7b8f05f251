import type { ServerResponse } from "node:http";

/** Aborts when the caller's connection has closed, or has waited for the store for so many milliseconds. */
export function answerSignal(response: ServerResponse, timeoutMs: number): AbortSignal {
  return AbortSignal.any([leftSignal(response), AbortSignal.timeout(timeoutMs)]);
}

/** Aborts when the caller's connection has closed. */
export function leftSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  if (response.destroyed) left.abort();
  else response.once("close", () => left.abort());
  return left.signal;
}
