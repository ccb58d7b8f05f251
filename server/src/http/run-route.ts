import { CommandExecuted } from "@ambit/core";
import { failedBy } from "../failed-result.js";
import { leftSignal } from "./response/left-signal.js";
import { RecordWriter } from "./response/record-writer.js";
import {
  framed,
  keepAlive,
  mediaTypes,
  type ResponseFormat,
  responseFormat,
} from "./response/response-format.js";
import { sendLargeJson } from "./response/send.js";
import { readerOf } from "./response/unread.js";
import type { RouteAnswer } from "./route/route.js";
import { beginRun } from "./runs/begin-run.js";
import type { Exchange, ServerContext } from "./server-context.js";

/**
 * `POST /run` and `/stream`.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused before anything was answered.
 */
export async function handleRun(
  context: ServerContext,
  exchange: Exchange,
  byDefault: ResponseFormat,
): Promise<RouteAnswer> {
  const server = await context.served();
  const form = responseFormat(exchange.incoming.headers.accept, byDefault);
  try {
    return await beginRun(context, server, exchange, form);
  } catch (error) {
    if (!(error instanceof CommandExecuted)) throw error;
    await sendCommand(error, form, exchange, context);
    return undefined;
  }
}

/**
 * Responds to a request whose command began a run before: with that run's result, once it has ended. In a stream it is
 * the only record.
 * @throws CommandExecuted when the result is no longer kept, if the response is JSON
 */
async function sendCommand(
  executed: CommandExecuted,
  form: ResponseFormat,
  { outgoing }: Exchange,
  { unread }: Pick<ServerContext, "unread">,
): Promise<void> {
  if (form === "json") {
    const result = await executed.result;
    if (result === undefined) throw executed;
    return sendLargeJson(outgoing, 200, result);
  }
  outgoing.writeHead(200, { "content-type": mediaTypes[form], "cache-control": "no-store" });
  outgoing.flushHeaders();
  const writer = new RecordWriter(outgoing);
  using _alive = keepAlive(form, writer);
  const left = leftSignal(outgoing);
  const gone = new Promise<undefined>((resolve) => left.addEventListener("abort", () => resolve(undefined)));
  const result = await Promise.race([executed.result, gone]);
  const record = result === undefined ? refused(executed) : ({ kind: "result", result } as const);
  const text = framed(form, JSON.stringify(record), 1);
  const wasRead = unread.hold(text.length, readerOf(outgoing));
  await writer.writeInParts(text).finally(wasRead);
  writer.end();
}

function refused(executed: CommandExecuted) {
  return { kind: "result", result: failedBy(executed.toFailure(), executed.message) } as const;
}
