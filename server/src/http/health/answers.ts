import { STATUS_CODES } from "node:http";
import type { HealthResponse, ReadyResponse, StalledResponse } from "../route-schemas.js";

/** What the server says of itself. */
export interface ServerState {
  readonly probing: boolean;
  readonly replicaId: string;
  readonly ready: ReadyResponse;
}

/** A response as JSON. */
interface HealthAnswer {
  readonly status: 200 | 503;
  readonly body: HealthResponse | StalledResponse | ReadyResponse;
}

/**
 * `GET /health`: the process lives, and its event loop turns. Pure.
 * @param stalledForMs how long it hasn't turned, where that is longer than allowed.
 */
export function healthAnswer(
  { probing, replicaId }: Pick<ServerState, "probing" | "replicaId">,
  stalledForMs?: number,
): HealthAnswer {
  if (stalledForMs === undefined) return { status: 200, body: { status: "ok", probing, replicaId } };
  return { status: 503, body: { status: "stalled", stalledForMs, replicaId } };
}

/** `GET /ready`: the server takes runs now. Pure. @param stalledForMs as for {@link healthAnswer}. */
export function readyAnswer(ready: ReadyResponse, stalledForMs?: number): HealthAnswer {
  const body: ReadyResponse = stalledForMs === undefined ? ready : { ...ready, status: "stalled" };
  return { status: body.status === "ready" ? 200 : 503, body };
}

/** What the health listener reads of a request. */
export interface ProbeRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** The keys are names in lower case. The last of several headers with one name counts. */
  readonly headers: Readonly<Record<string, string>>;
}

const requestLine = /^([A-Z]{1,16}) (\/[\x21-\x7e]*) HTTP\/1\.[01]$/;
const headerLine = /^([!#$%&'*+.^_`|~0-9a-z-]+):(.*)$/i;
/** Around a value. Nothing before the last is tried again: a header of spaces would take the square of its length. */
const blanks = /^[ \t]+|(?<![ \t])[ \t]+$/g;

/**
 * Reads the header of a request. Pure. Node's own parser would make an object for each of the 1,400 requests that fit into one
 * segment before the first of them could be answered: 40 ms of CPU for each segment that a hostile caller sends.
 *
 * @param header up to the empty line, without it. @returns undefined if it isn't HTTP/1.
 */
export function readProbeRequest(header: string): ProbeRequest | undefined {
  const [first = "", ...lines] = header.split("\r\n");
  const [, method, url] = requestLine.exec(first) ?? [];
  if (method === undefined || url === undefined) return undefined;
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers[name.toLowerCase()] = value.replace(blanks, "");
  }
  return { method, path: url.split("?", 1)[0] ?? url, headers };
}

/** A whole response, after which the connection ends. Pure. @param isHead without the body. */
export function probeResponse(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  isHead = false,
): string {
  const text = JSON.stringify(body);
  const lines = Object.entries({
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    "cache-control": "no-store",
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${isHead ? "" : text}`;
}
