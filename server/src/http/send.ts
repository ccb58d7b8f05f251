import type { ServerResponse } from "node:http";

/** Answers with JSON, unless the caller has left. Straight to the response: no copy, no stream in between. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  send(response, status, "application/json", JSON.stringify(body), headers);
}

export function send(
  response: ServerResponse,
  status: number,
  mediaType: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    ...headers,
    "content-type": mediaType,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  });
  response.end(text);
}
