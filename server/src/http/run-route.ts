import { limits, secretsOf } from "@ambit/core";
import { type AnswerForm, answerForm } from "./answer-form.js";
import { answerRun } from "./answer-run.js";
import { readJson } from "./body.js";
import type { Exchange, ServerContext } from "./server-context.js";

/**
 * `POST /run` and `/stream`: the place first, then the body, then the plan, then the run.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused before anything was answered.
 */
export async function handleRun(
  context: ServerContext,
  { incoming, outgoing }: Exchange,
  byDefault: AnswerForm,
): Promise<void> {
  const { runner, log, redaction } = context;
  const form = answerForm(incoming.headers.accept, byDefault);
  const begun = performance.now();
  const slot = runner.reserve();
  try {
    const body = await readJson(incoming, limits.bodyBytes);
    const run = await slot.admit(body, { keepsEvents: form === "json" });
    const reveal = redaction.hide(secretsOf(run.request));
    try {
      const { harness, sandbox } = run.plan;
      log.info({ runId: run.id, harness: harness.actor.id, sandbox: sandbox.actor.name }, "a run begins");
      const result = await answerRun(run, form, outgoing, log);
      const outcome = result?.failure?.code ?? result?.stopReason;
      log.info({ runId: run.id, outcome, ms: Math.round(performance.now() - begun) }, "a run has ended");
    } finally {
      reveal();
    }
  } finally {
    slot.release();
  }
}
