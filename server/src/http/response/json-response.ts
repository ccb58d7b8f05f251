import { retryAfter } from "./send.js";

/** A response with JSON, for a route to return. Never cached: what a caller sees depends on its token. */
export function json(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      ...retryAfter(status),
      ...headers,
      "content-type": "application/json",
      "cache-control": "no-store",
    },
  });
}
