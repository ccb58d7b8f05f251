import { messageOf, unlessAborted } from "@ambit/core/plugin";
import { textInTurns } from "@ambit/json-turns";
import { type Dispatcher, request } from "undici";
import type { CallbackResponse, Posting } from "./posting.js";

/** Bytes of an error's text that are read: what it says to a model is short, and comes as one JSON. */
const maxErrorBodyBytes = 64 * 1024;
/** Milliseconds to wait for the text of an error: its status is already known. */
const rejectionWait = 1_000;

/**
 * Sends and reads one answer, in turns of the event loop. Never follows a redirect.
 *
 * @throws the error of the connection or the signal.
 */
export async function exchange(
  posting: Posting,
  dispatcher: Dispatcher,
  signal: AbortSignal,
  maxAnswerBytes: number,
): Promise<CallbackResponse> {
  const { url, method, headers, body } = posting;
  // undici looks at the signal once it is connected: it sends nothing then, but a name server or a host that doesn't
  // answer would hold the call until the connection's own time limit.
  const response = await unlessAborted(signal, () =>
    request(url, { dispatcher, method, headers, signal, body }),
  );
  const { statusCode: status } = response;
  if (status >= 200 && status < 300) return await readAnswer(response, maxAnswerBytes);
  const location = response.headers.location;
  return {
    kind: "rejected",
    status,
    ...(typeof location === "string" ? { location } : {}),
    body: await readRejection(response.body),
  };
}

async function readAnswer(
  { headers, body }: Dispatcher.ResponseData,
  maxAnswerBytes: number,
): Promise<CallbackResponse> {
  if (Number(headers["content-length"]) > maxAnswerBytes) {
    await textInTurns(body, 0);
    return { kind: "too_long" };
  }
  const { text, isWhole } = await textInTurns(body, maxAnswerBytes);
  return isWhole ? { kind: "answered", body: text } : { kind: "too_long" };
}

async function readRejection(body: Dispatcher.ResponseData["body"]): Promise<string> {
  const late = setTimeout(() => body.destroy(), rejectionWait);
  try {
    return (await textInTurns(body, maxErrorBodyBytes)).text;
  } catch (error) {
    return `(its text could not be read: ${messageOf(error)})`;
  } finally {
    clearTimeout(late);
  }
}
