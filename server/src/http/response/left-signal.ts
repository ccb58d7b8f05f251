import type { ServerResponse } from "node:http";

/** Aborts when the caller's connection has closed. */
export function leftSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  if (response.destroyed) left.abort();
  else response.once("close", () => left.abort());
  return left.signal;
}
