/** The records of a run as a response: their formats, their writer, and the memory that slow readers may hold. */

import type { ServerResponse } from "node:http";
import { type FailedResult, type Log, messageOf, type RunResult } from "@ambit/core";
import { pieceEnd } from "@ambit/core/plugin";
import type { Records } from "@ambit/durable";
import { parseAccept } from "hono/utils/accept";
import { callerOf, shareOf } from "../../tenants/caller.js";

const formats = ["json", "ndjson", "events"] as const;

/** The format of a response: one result, or records as they happen. */
export type ResponseFormat = (typeof formats)[number];
type StreamFormat = Exclude<ResponseFormat, "json">;

export const mediaTypes: Readonly<Record<ResponseFormat, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  events: "text/event-stream",
};

/** Milliseconds of silence after which a stream shows that it is alive: proxies and callers close idle connections. */
const heartbeatMs = 15_000;

/** What isn't a record, and what readers skip: a blank line, or a comment. */
const heartbeats: Readonly<Record<StreamFormat, string>> = {
  ndjson: "\n",
  events: ": running\n\n",
};

/** Keeps a stream alive until it is disposed. */
export function keepAlive(form: StreamFormat, writer: RecordWriter): Disposable {
  return writer.fillSilence(heartbeats[form], heartbeatMs);
}

/** The supported format that the caller prefers; the default if it names none of them. */
export function responseFormat(accept: string | undefined, byDefault: ResponseFormat): ResponseFormat {
  const formatOf = (type: string) => formats.find((format) => mediaTypes[format] === type.toLowerCase());
  const accepted = parseAccept(accept ?? "").flatMap(({ type, q }) => {
    const format = q > 0 ? formatOf(type) : undefined;
    return format === undefined ? [] : [{ format, q }];
  });
  return accepted.sort((one, other) => other.q - one.q)[0]?.format ?? byDefault;
}

/** A result that is a stream's only record, in its wire format. */
export function onlyRecord(form: StreamFormat, result: RunResult | FailedResult): string {
  const json = JSON.stringify({ kind: "result", result });
  return form === "ndjson" ? `${json}\n` : `id: 1\ndata: ${json}\n\n`;
}

/** Ends the response to a `HEAD` request, once it has its headers: what would follow isn't even read. */
export function endsWithHeaders(response: ServerResponse): boolean {
  if (response.req.method !== "HEAD") return false;
  response.end();
  return true;
}

/** Characters that are handed to the connection at a time. */
const partLength = 65_536;

/**
 * Writes texts to a response as fast as its reader takes them. It holds none of them: a log's writer gathers what comes
 * together, and Node sends together what is written in one turn.
 */
export class RecordWriter {
  readonly #waiting = new Set<() => void>();
  #silence: NodeJS.Timeout | undefined;

  constructor(readonly response: ServerResponse) {
    response.on("drain", () => this.#proceed());
    response.on("close", () => this.#proceed());
  }

  /** A promise while the reader is behind. */
  write(text: string | Uint8Array): Promise<void> | undefined {
    const { response } = this;
    this.#silence?.refresh();
    if (response.destroyed || response.write(text) || response.destroyed) return undefined;
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** A text of any size, in parts: the connection copies what its reader doesn't take at once. */
  async writeInParts(text: string): Promise<void> {
    for (let start = 0; start < text.length; ) {
      const part = text.slice(start, pieceEnd(text, start + partLength));
      start += part.length;
      const room = this.write(part);
      if (room !== undefined) await room;
    }
  }

  /** Writes a text after each `silenceMs` without any, until it is disposed. A reader that is behind gets none. */
  fillSilence(text: string, silenceMs: number): Disposable {
    const silence = setInterval(() => {
      if (this.#waiting.size === 0) void this.write(text);
    }, silenceMs);
    this.#silence = silence;
    return { [Symbol.dispose]: () => clearInterval(silence) };
  }

  end(): void {
    if (!this.response.destroyed) this.response.end();
  }

  #proceed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

/**
 * Sends records as they are committed, at the reader's own pace. If the log can't be read any further, it ends the
 * connection without a result, and the reader reconnects where it stopped.
 */
export async function sendRecords(
  runId: string,
  form: StreamFormat,
  records: AsyncIterable<Records>,
  response: ServerResponse,
  { log, unread }: { readonly log: Log; readonly unread: UnreadTexts },
): Promise<void> {
  response.writeHead(200, {
    "content-type": mediaTypes[form],
    "cache-control": "no-store",
    // nginx buffers responses without this header.
    "x-accel-buffering": "no",
    "x-ambit-run-id": runId,
  });
  if (endsWithHeaders(response)) return;
  // The first records often follow at once: then the headers go with them.
  const flush = setImmediate(() => response.flushHeaders());
  const writer = new RecordWriter(response);
  using _alive = keepAlive(form, writer);
  try {
    for await (const { first, text } of records) {
      clearImmediate(flush);
      const page = form === "ndjson" ? text : asEvents(first, text);
      using _unread = unread.hold(page.length, response);
      await writer.writeInParts(page);
    }
    writer.end();
  } catch (error) {
    if (response.destroyed) return;
    log.warn({ runId, error: messageOf(error) }, "a reader's connection is ended: the log can't be read");
    response.destroy();
  }
}

/** The lines as server-sent events, each with its number. */
function asEvents(first: number, text: string): string {
  const events: string[] = [];
  let number = first;
  for (let start = 0; start < text.length; number += 1) {
    const end = text.indexOf("\n", start);
    events.push(`id: ${number}\ndata: ${text.slice(start, end)}\n\n`);
    start = end + 1;
  }
  return events.join("");
}

/** Characters of large texts that may wait for their readers at one time. */
const maxUnread = 64 * 1024 * 1024;
/** Texts up to this length don't count: a reader's page of a log. */
const pageLength = 131_072;

interface HeldText {
  readonly length: number;
  /** Whose share of memory it takes. Undefined: the operator's. */
  readonly tenant: string | undefined;
  readonly response: ServerResponse;
}

/**
 * Large texts that wait for their readers, such as results. Beyond the limit, the tenant with the most of them loses the
 * one that has taken longest: slow readers only displace each other, and a tenant's many first of all its own. A stored result
 * can be read again.
 */
export class UnreadTexts {
  /** The set keeps the order in which they began. */
  readonly #held = new Set<HeldText>();

  constructor(readonly max = maxUnread) {}

  /** Counts a text until it is disposed of, because its reader has it or has left. The response of a displaced text is destroyed. */
  hold(length: number, response: ServerResponse): Disposable {
    if (length <= pageLength) return { [Symbol.dispose]: () => undefined };
    const unread: HeldText = { length, response, tenant: shareOf(callerOf(response.req)) };
    this.#held.add(unread);
    for (let text = this.#displacedBy(unread); text !== undefined; text = this.#displacedBy(unread)) {
      this.#held.delete(text);
      text.response.destroy();
    }
    return { [Symbol.dispose]: () => void this.#held.delete(unread) };
  }

  /** Each of them is longer than a page, so that there are few. */
  #displacedBy(added: HeldText): HeldText | undefined {
    const lengths = new Map<string | undefined, number>();
    let total = 0;
    for (const { tenant, length } of this.#held) {
      lengths.set(tenant, (lengths.get(tenant) ?? 0) + length);
      total += length;
    }
    if (total <= this.max) return undefined;
    const lengthOf = ({ tenant }: HeldText) => lengths.get(tenant) ?? 0;
    const others = [...this.#held].filter((held) => held !== added);
    return others.reduce<HeldText | undefined>(
      (largest, held) => (largest !== undefined && lengthOf(largest) >= lengthOf(held) ? largest : held),
      undefined,
    );
  }
}
