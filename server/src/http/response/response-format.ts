import type { FailedResult, StreamRecord } from "@ambit/core";
import { parseAccept } from "hono/utils/accept";
import type { RecordWriter } from "./record-writer.js";

/** The format of a response: one result, or records as they happen. */
export type ResponseFormat = "json" | "ndjson" | "events";

const forms: Readonly<Record<string, ResponseFormat>> = {
  "application/json": "json",
  "application/x-ndjson": "ndjson",
  "text/event-stream": "events",
};

export const mediaTypes: Readonly<Record<ResponseFormat, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  events: "text/event-stream",
};

/** Milliseconds of silence after which a stream shows that it is alive: proxies and callers close idle connections. */
const heartbeatMs = 15_000;

/** What isn't a record, and what readers skip: a blank line, or a comment. */
const heartbeats: Readonly<Record<Exclude<ResponseFormat, "json">, string>> = {
  ndjson: "\n",
  events: ": running\n\n",
};

/** Keeps a stream alive until it is disposed. */
export function keepAlive(form: Exclude<ResponseFormat, "json">, writer: RecordWriter): Disposable {
  return writer.fillSilence(heartbeats[form], heartbeatMs);
}

/** The supported format that the caller prefers; the default if it names none of them. */
export function responseFormat(accept: string | undefined, byDefault: ResponseFormat): ResponseFormat {
  const wanted = parseAccept(accept ?? "")
    .filter(({ type, q }) => q > 0 && forms[type.toLowerCase()] !== undefined)
    .sort((one, other) => other.q - one.q);
  return forms[wanted[0]?.type.toLowerCase() ?? ""] ?? byDefault;
}

/** A refusal is a stream's only record; it may lack a run's id. */
type AnyRecord = StreamRecord | { readonly kind: "result"; readonly result: FailedResult };

/** One record in its wire format. @param index from 1, so that a reader knows its position. */
export function encodeRecord(
  form: Exclude<ResponseFormat, "json">,
  record: AnyRecord,
  index: number,
): string {
  return framed(form, JSON.stringify(record), index);
}

/** The JSON of a record in its wire format. @param index from 1, so that a reader knows its position. */
export function framed(form: Exclude<ResponseFormat, "json">, json: string, index: number): string {
  return form === "ndjson" ? `${json}\n` : `id: ${index}\ndata: ${json}\n\n`;
}
