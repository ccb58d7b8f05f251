import type { IncomingMessage } from "node:http";
import { parseJson } from "../parse-json.js";
import { HttpRefusal } from "./refusal.js";

/**
 * The request's body as JSON; an empty one is `{}`. Counted as it comes: nobody's `content-length` is believed,
 * but one that is too large already is refused before a byte is read.
 *
 * @throws HttpRefusal 413 beyond `limitBytes`, MalformedJson
 */
export async function readJson(incoming: IncomingMessage, limitBytes: number): Promise<unknown> {
  if (Number(incoming.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > limitBytes) throw tooLarge(limitBytes);
    chunks.push(chunk);
  }
  return parseJson(Buffer.concat(chunks, length).toString("utf8"));
}

function tooLarge(limitBytes: number): HttpRefusal {
  const limit = limitBytes.toLocaleString("en");
  // The rest of the body isn't read, so the connection can't carry another request.
  const headers = { connection: "close" };
  return new HttpRefusal(
    413,
    `The body is larger than ${limit} bytes: send less.`,
    "request_invalid",
    headers,
  );
}
