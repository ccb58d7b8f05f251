import { messageOf, unlessAborted } from "@ambit/core/plugin";
import { type Dispatcher, request } from "undici";
import { type CallbackResponse, maxResponseBytes, type Posting } from "./posting.js";

/** Bytes of an error's text that are read: what it says to a model is short, and comes as one JSON. */
const maxErrorBodyBytes = 64 * 1024;
/** Milliseconds to wait for the text of an error: its status is already known. */
const rejectionWait = 1_000;

/**
 * Sends and reads one answer. Never follows a redirect.
 *
 * @throws the error of the connection or the signal.
 */
export async function exchange(
  posting: Posting,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<CallbackResponse> {
  const { url, method, headers, body } = posting;
  // undici looks at the signal once it is connected: it sends nothing then, but a name server or a host that doesn't
  // answer would hold the call until the connection's own time limit.
  const response = await unlessAborted(signal, () =>
    request(url, { dispatcher, method, headers, signal, ...(body === undefined ? {} : { body }) }),
  );
  const { statusCode: status } = response;
  if (status >= 200 && status < 300) return await readAnswer(response);
  const location = response.headers.location;
  return {
    kind: "rejected",
    status,
    ...(typeof location === "string" ? { location } : {}),
    body: await readRejection(response.body),
  };
}

async function readAnswer({ headers, body }: Dispatcher.ResponseData): Promise<CallbackResponse> {
  if (Number(headers["content-length"]) > maxResponseBytes) {
    await read(body, 0);
    return { kind: "too_long" };
  }
  const { text, complete } = await read(body, maxResponseBytes);
  return complete ? { kind: "answered", body: text } : { kind: "too_long" };
}

async function readRejection(body: Dispatcher.ResponseData["body"]): Promise<string> {
  const late = setTimeout(() => body.destroy(), rejectionWait);
  try {
    return (await read(body, maxErrorBodyBytes)).text;
  } catch (error) {
    return `(its text could not be read: ${messageOf(error)})`;
  } finally {
    clearTimeout(late);
  }
}

/** Reads `limit` bytes at most. Leaving the loop early ends the connection, so that nothing more arrives. */
async function read(
  body: Dispatcher.ResponseData["body"],
  limit: number,
): Promise<{ readonly text: string; readonly complete: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("expected the answer's body as bytes");
    chunks.push(chunk.subarray(0, limit - size));
    size += chunk.length;
    if (size > limit) return { text: decode(chunks), complete: false };
  }
  return { text: decode(chunks), complete: true };
}

function decode(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString("utf8");
}
