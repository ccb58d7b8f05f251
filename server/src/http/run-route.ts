import { CommandExecuted, limits, RequestInvalid } from "@ambit/core";
import { callerOf } from "./caller/caller.js";
import { callerOptions, reserve } from "./caller/quota-place.js";
import { type ResponseFormat, responseFormat } from "./response/response-format.js";
import { sendCommand } from "./response/send-command.js";
import { sendRun } from "./response/send-run.js";
import { runFields } from "./run-fields.js";
import { handleDurableRun } from "./runs/durable-run.js";
import { asksToDetach, idempotencyKey, prefersAsync } from "./runs/run-body.js";
import type { Exchange, ServerContext } from "./server-context.js";

/**
 * `POST /run` and `/stream`: checks for a free slot, then reads the body, takes a slot, plans, and runs.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused before anything was answered.
 */
export async function handleRun(
  context: ServerContext,
  exchange: Exchange,
  byDefault: ResponseFormat,
): Promise<void> {
  const server = await context.durable();
  const form = responseFormat(exchange.incoming.headers.accept, byDefault);
  try {
    await (server === undefined
      ? handleBoundRun(context, exchange, form)
      : handleDurableRun(context, server, exchange, form));
  } catch (error) {
    if (!(error instanceof CommandExecuted)) throw error;
    await sendCommand(error, form, exchange);
  }
}

/** A run that ends with this process. */
async function handleBoundRun(
  context: ServerContext,
  exchange: Exchange,
  form: ResponseFormat,
): Promise<void> {
  const { runner, log, bodies } = context;
  const { incoming, outgoing } = exchange;
  const begun = performance.now();
  // A slow body doesn't occupy a slot, but no body is read if there is no free slot.
  runner.requireRoom();
  const body = await bodies.json(incoming, limits.bodyBytes);
  const runId = idempotencyKey(incoming);
  if (prefersAsync(incoming) || asksToDetach(body)) {
    const message =
      "needs a store, which this server hasn't: load @ambit/store-sqlite or @ambit/store-postgres";
    throw new RequestInvalid([{ path: "detach", message }]);
  }
  const place = context.tenancy.take(callerOf(incoming), body, runner);
  const slot = reserve(runner, place);
  let cost: number | undefined;
  try {
    const run = await slot.admit(body, {
      keepsEvents: form === "json",
      ...callerOptions(incoming),
      ...(runId === undefined ? {} : { runId }),
    });
    const { harness, sandbox } = run.plan;
    const fields = runFields(run);
    log.info({ ...fields, harness: harness.actor.id, sandbox: sandbox.actor.name }, "a run begins");
    const result = await sendRun(run, form, outgoing, log);
    cost = result?.usage?.cost;
    const outcome = result?.failure?.code ?? result?.stopReason;
    log.info({ ...fields, outcome, ms: Math.round(performance.now() - begun) }, "a run has ended");
  } finally {
    slot.release();
    place.release(cost);
  }
}
