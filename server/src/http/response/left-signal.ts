import type { ServerResponse } from "node:http";

/** Aborts when the caller's connection has closed, or has waited for the store for so many milliseconds. */
export function answerSignal(response: ServerResponse, timeoutMs: number): AbortSignal {
  return AbortSignal.any([leftSignal(response), AbortSignal.timeout(timeoutMs)]);
}

/** Aborts when the caller's connection has closed before it got the whole response. */
export function leftSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  const leave = () => {
    if (!response.writableFinished) left.abort();
  };
  if (response.destroyed) leave();
  else response.once("close", leave);
  return left.signal;
}
