import type { IncomingMessage } from "node:http";
import { limits, RequestInvalid, runIdSchema } from "@ambit/core";
import { type AnswerForm, answerForm } from "./answer-form.js";
import { answerRun } from "./answer-run.js";
import type { Exchange, ServerContext } from "./server-context.js";

/**
 * `POST /run` and `/stream`: whether there is a place, then the body, the place itself, the plan, the run.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused before anything was answered.
 */
export async function handleRun(
  context: ServerContext,
  { incoming, outgoing }: Exchange,
  byDefault: AnswerForm,
): Promise<void> {
  const { runner, log, bodies } = context;
  const form = answerForm(incoming.headers.accept, byDefault);
  const begun = performance.now();
  // A body that comes slowly keeps no run from its place, but none is read where there is no place.
  runner.requireRoom();
  const body = await bodies.json(incoming, limits.bodyBytes);
  const runId = idempotencyKey(incoming);
  const slot = runner.reserve();
  try {
    const run = await slot.admit(body, { keepsEvents: form === "json", ...runId });
    const { harness, sandbox } = run.plan;
    log.info({ runId: run.id, harness: harness.actor.id, sandbox: sandbox.actor.name }, "a run begins");
    const result = await answerRun(run, form, outgoing, log);
    const outcome = result?.failure?.code ?? result?.stopReason;
    log.info({ runId: run.id, outcome, ms: Math.round(performance.now() - begun) }, "a run has ended");
  } finally {
    slot.release();
  }
}

/** The run's id as a header gives it. @throws RequestInvalid */
function idempotencyKey({ headers }: IncomingMessage): { readonly runId?: string } {
  const key = headers["idempotency-key"];
  if (key === undefined) return {};
  const parsed = runIdSchema.safeParse(key);
  if (parsed.success) return { runId: parsed.data };
  const messages = parsed.error.issues.map(({ message }) => ({ path: "Idempotency-Key", message }));
  throw new RequestInvalid(messages);
}
