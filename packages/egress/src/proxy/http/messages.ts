import type { ClientRequest } from "node:http";
import type { Readable, Writable } from "node:stream";
import { SmallPieces } from "@ambit/core/plugin";
import { type RawMessage, valuesOf } from "./destination.js";
import { BOUNDARY_HEADER } from "./own-response.js";

/** Hop-by-hop headers (RFC 9110 section 7.6.1), and the proxy's own. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/**
 * Headers for the next hop as [name, value, name, value...], without hop-by-hop ones and those that `Connection` names.
 */
function endToEndHeaders(message: RawMessage): string[] {
  const named = valuesOf(message, "connection").flatMap((value) => value.toLowerCase().split(","));
  const dropped = new Set([...HOP_BY_HOP, ...named.map((name) => name.trim())]);
  // Content-Length frames the body; a Connection header that names it would make two lengths of one message.
  dropped.delete("content-length");
  dropped.delete("host");
  const { rawHeaders } = message;
  return rawHeaders.filter((_value, index) => {
    const name = rawHeaders[index - (index % 2)] ?? "";
    return !dropped.has(name.toLowerCase());
  });
}

/** The response's headers for the client; a server can't claim to be the boundary. */
export function responseHeaders(message: RawMessage): string[] {
  const headers = endToEndHeaders(message);
  return headers.filter((_value, index) => headers[index - (index % 2)]?.toLowerCase() !== BOUNDARY_HEADER);
}

/** Copies a request's headers with their duplicates. The proxy itself sets Host and handles Expect. */
export function copyRequestHeaders(from: RawMessage, to: ClientRequest): void {
  const headers = endToEndHeaders(from);
  const grouped = new Map<string, { name: string; values: string[] }>();
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? "";
    const key = name.toLowerCase();
    if (key === "host" || key === "expect") continue;
    const group = grouped.get(key) ?? { name, values: [] };
    group.values.push(headers[index + 1] ?? "");
    grouped.set(key, group);
  }
  for (const { name, values } of grouped.values()) {
    const [only] = values;
    to.setHeader(name, values.length === 1 && only !== undefined ? only : values);
  }
}

/** Bytes below which a piece counts as small. */
const smallBytes = 1_024;
/** Small pieces of one body that are read in one turn of the event loop. */
const maxBurst = 128;

/**
 * Passes a body on with backpressure, and ends `to` with it. The sender chooses its chunks: what comes in small ones is put
 * together, and read in turns of the event loop, since to handle one takes as long as to handle 64 KiB.
 */
export function passBody(from: Readable, to: Writable): void {
  const small = new SmallPieces();
  let burst = 0;
  let isScheduled = false;
  let isFull = false;
  const write = (pieces: readonly Uint8Array[]) => {
    for (const piece of pieces) if (!to.write(piece)) isFull = true;
    if (isFull) from.pause();
  };
  const goOn = () => {
    if (!isFull && burst < maxBurst) from.resume();
  };
  const nextTurn = () => {
    isScheduled = false;
    burst = 0;
    if (to.destroyed || to.writableEnded) return;
    write(small.end());
    goOn();
  };
  const schedule = () => {
    isScheduled = true;
    setImmediate(nextTurn);
  };
  const take = (piece: Buffer) => {
    write(small.push(piece));
    if (piece.length >= smallBytes) return;
    burst += 1;
    if (burst >= maxBurst) from.pause();
    if (!isScheduled) schedule();
  };
  from.on("data", take);
  from.once("end", () => {
    write(small.end());
    to.end();
  });
  to.on("drain", () => {
    isFull = false;
    goOn();
  });
  // As a pipe does: what still comes isn't read.
  to.once("close", () => {
    from.off("data", take);
    from.pause();
  });
}
