import type { CommandExecuted } from "@ambit/core";
import { failedBy } from "../../failed-result.js";
import type { Exchange, ServerContext } from "../server-context.js";
import { leftSignal } from "./left-signal.js";
import { RecordWriter } from "./record-writer.js";
import { framed, keepAlive, mediaTypes, type ResponseFormat } from "./response-format.js";
import { sendLargeJson } from "./send.js";
import { readerOf } from "./unread.js";

/**
 * Responds to a request whose command began a run before: with that run's result, once it has ended. In a stream it is
 * the only record.
 * @throws CommandExecuted when the result is no longer kept, if the response is JSON
 */
export async function sendCommand(
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
