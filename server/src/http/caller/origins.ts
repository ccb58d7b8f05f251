import type { IncomingMessage, ServerResponse } from "node:http";

/** Headers that a page may send. A token among them is checked as any other caller's. */
const requestHeaders = [
  "authorization",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "prefer",
  "traceparent",
  "tracestate",
  "baggage",
  "x-ambit-token",
];

/** Headers of an answer that a page may read. */
const exposedHeaders = ["x-ambit-run-id", "retry-after", "location"];

/** Seconds for which a browser needs to ask no second time: the most that one remembers. */
const maxAgeSeconds = 7_200;

/**
 * Lets a page of a listed origin read the answer, whatever it will be (CORS). No cookie counts here, so none is allowed.
 *
 * @returns whether a browser only asks if the page may call: then the answer is complete but for its status.
 */
export function answerOrigin(
  { method, headers }: IncomingMessage,
  outgoing: ServerResponse,
  origins: readonly string[],
): boolean {
  if (origins.length === 0) return false;
  outgoing.setHeader("vary", "Origin");
  const { origin } = headers;
  if (origin === undefined || !origins.includes(origin)) return false;
  outgoing.setHeader("access-control-allow-origin", origin);
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) {
    outgoing.setHeader("access-control-expose-headers", exposedHeaders.join(", "));
    return false;
  }
  outgoing.setHeader("access-control-allow-methods", "GET, POST, DELETE");
  outgoing.setHeader("access-control-allow-headers", requestHeaders.join(", "));
  outgoing.setHeader("access-control-max-age", maxAgeSeconds);
  return true;
}
