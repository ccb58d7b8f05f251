import { CommandExecuted } from "@ambit/core";
import { type ResponseFormat, responseFormat } from "./response/response-format.js";
import { sendCommand } from "./response/send-command.js";
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
