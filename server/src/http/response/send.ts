import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Log } from "@ambit/core";
import { endsWithHeaders, RecordWriter } from "./records.js";

/** Characters of a larger body that are handed to the connection at a time. */
const partLength = 131_072;
const jsonHeaders = { "content-type": "application/json", "cache-control": "no-store" };

/** Every 429 and 503 says when to try again: after a second, unless its cause knows better. */
function retryAfter(status: number): Readonly<Record<string, string>> {
  return status === 429 || status === 503 ? { "retry-after": "1" } : {};
}

/** Responds with a text, unless the caller has disconnected. Written directly, without a copy or stream in between. */
export function send(
  response: ServerResponse,
  status: number,
  mediaType: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    ...retryAfter(status),
    ...headers,
    "content-type": mediaType,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
  });
  response.end(text);
}

/**
 * The same for a body of any size: a large one is sent in parts, as fast as its reader takes them, and others are
 * served in between. Resolves when everything was handed over, or the caller has disconnected.
 */
export async function sendLargeJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  let text = "";
  let writer: RecordWriter | undefined;
  for (const piece of jsonPieces(body)) {
    text += piece;
    if (text.length < partLength) continue;
    if (response.destroyed) return;
    if (writer === undefined) {
      response.writeHead(status, { ...retryAfter(status), ...headers, ...jsonHeaders });
      writer = new RecordWriter(response);
    }
    await writer.write(text);
    // A connection that takes everything reports that within the same turn of the event loop.
    await nextTurn();
    text = "";
  }
  if (writer === undefined) return send(response, status, "application/json", text, headers);
  void writer.write(text);
  writer.end();
}

/**
 * The JSON of a body, whose lists are written item by item: the events of a run's result may have tens of megabytes. Pure.
 * For plain data: `toJSON` isn't called.
 */
export function* jsonPieces(body: object): Generator<string, void, undefined> {
  let separator = "{";
  for (const [key, value] of Object.entries(body)) {
    if (value === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    if (Array.isArray(value)) yield* listPieces(value);
    else yield JSON.stringify(value);
    separator = ",";
  }
  yield separator === "{" ? "{}" : "}";
}

function* listPieces(list: readonly unknown[]): Generator<string, void, undefined> {
  let separator = "[";
  for (const item of list) {
    yield `${separator}${JSON.stringify(item) ?? "null"}`;
    separator = ",";
  }
  yield separator === "[" ? "[]" : "]";
}

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

/** A browser must neither show nor guess what a run's agent wrote. */
const untrusted = {
  "cache-control": "no-store",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
};

/** What an agent wrote, as fast as its reader takes it. */
export async function sendUntrusted(
  { outgoing }: { readonly outgoing: ServerResponse },
  content: AsyncIterable<Uint8Array>,
  headers: Readonly<Record<string, string | number>>,
  log: Log,
): Promise<void> {
  if (outgoing.destroyed) return;
  outgoing.writeHead(200, { ...untrusted, ...headers });
  if (endsWithHeaders(outgoing)) return;
  let hasLeft = true;
  async function* parts() {
    try {
      yield* content;
    } catch (error) {
      hasLeft = outgoing.destroyed;
      throw error;
    }
  }
  try {
    await pipeline(Readable.from(parts()), outgoing);
  } catch (error) {
    // The connection has ended, which is all that a reader can learn after the header.
    if (hasLeft) log.debug({ error }, "files were not sent to their end: their reader has left");
    else log.warn({ error }, "files can't be sent to their end");
  }
}

/** Aborts when the caller's connection has closed, or has waited for the store for so many milliseconds. */
export function answerSignal(response: ServerResponse, timeoutMs: number): AbortSignal {
  return AbortSignal.any([leftSignal(response), AbortSignal.timeout(timeoutMs)]);
}

/** Aborts when the caller's connection has closed before it got the whole response. */
export function leftSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  onceLeft(response, () => left.abort());
  return left.signal;
}

/** Calls back when the caller's connection has closed before it got the whole response. */
export function onceLeft(response: ServerResponse, act: () => void): void {
  const leave = () => {
    if (!response.writableFinished) act();
  };
  if (response.destroyed) leave();
  else response.once("close", leave);
}
