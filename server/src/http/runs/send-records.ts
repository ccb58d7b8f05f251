import type { ServerResponse } from "node:http";
import { messageOf } from "@ambit/core";
import type { Records } from "@ambit/durable";
import { RecordWriter } from "../response/record-writer.js";
import { keepAlive, mediaTypes, type ResponseFormat } from "../response/response-format.js";
import { endsWithHeaders } from "../response/send.js";
import { readerOf } from "../response/unread.js";
import type { ServerContext } from "../server-context.js";

/**
 * Sends records as they are committed, at the reader's own pace. If the log can't be read any further, it ends the
 * connection without a result, and the reader reconnects where it stopped.
 */
export async function sendRecords(
  runId: string,
  form: Exclude<ResponseFormat, "json">,
  records: AsyncIterable<Records>,
  response: ServerResponse,
  { log, unread }: Pick<ServerContext, "log" | "unread">,
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
  let wasRead = () => {};
  try {
    for await (const { first, text } of records) {
      clearImmediate(flush);
      const page = form === "ndjson" ? text : asEvents(first, text);
      wasRead = unread.hold(page.length, readerOf(response));
      await writer.writeInParts(page);
      wasRead();
    }
    writer.end();
  } catch (error) {
    if (response.destroyed) return;
    log.warn({ runId, error: messageOf(error) }, "a reader's connection is ended: the log can't be read");
    response.destroy();
  } finally {
    wasRead();
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
