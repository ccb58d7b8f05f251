import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Log } from "@ambit/core";
import type { Exchange } from "../server-context.js";
import { endsWithHeaders } from "./send.js";

/** A browser must neither show nor guess what a run's agent wrote. */
const untrusted = {
  "cache-control": "no-store",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
};

/** What an agent wrote, as fast as its reader takes it. */
export async function sendUntrusted(
  { outgoing }: Pick<Exchange, "outgoing">,
  content: AsyncIterable<Uint8Array>,
  headers: Readonly<Record<string, string | number>>,
  log: Log,
): Promise<void> {
  if (outgoing.destroyed) return;
  outgoing.writeHead(200, { ...untrusted, ...headers });
  if (endsWithHeaders(outgoing)) return;
  try {
    await pipeline(Readable.from(content), outgoing);
  } catch (error) {
    // The connection has ended, which is all that a reader can learn after the header.
    log.debug({ error }, "files were not sent to their end");
  }
}
