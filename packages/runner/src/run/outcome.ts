import {
  type AcceptedPlan,
  type AmbitError,
  asPluginError,
  cancelledByCaller,
  errorDetailOf,
  receiptOf,
} from "@ambit/core";
import type { ForkReceipt, OutputsReceipt, Receipt, RunRequest, RunResult } from "@ambit/core/contract";
import type { Agent, Log } from "@ambit/core/plugin";
import { unaskedClasses } from "../call/permission/known-tools.js";
import type { RunEvents } from "../events/run-events.js";
import type { FilledWorkspace } from "../operator.js";
import type { Session } from "../session/session.js";
import { visibleCredentials } from "../session/sessions.js";
import type { Progress, TurnEnd } from "./run-state.js";

/** How a run went, once everything is closed. */
export interface RunOutcome {
  readonly runId: string;
  readonly events: Pick<RunEvents, "record" | "redactor" | "decisions" | "warnings" | "observation">;
  /** The agent's whole output, redacted. */
  readonly output: string;
  readonly progress: Progress;
  readonly failure: AmbitError | undefined;
  /** What left the workspace. */
  readonly outputs: OutputsReceipt | undefined;
  /** What a new workspace was filled with. */
  readonly filledWith: FilledWorkspace;
  /** What its session began as a copy of. */
  readonly fork: ForkReceipt | undefined;
  /** The session's id, or the id that stands for the session of a run without one. */
  readonly sessionName: string;
}

/**
 * The run's one result, in every case. If an actor's values make the receipt fail, it is built without the receipt; if
 * that fails too, it has only the failure.
 */
export function conclude(
  request: RunRequest,
  plan: AcceptedPlan,
  outcome: RunOutcome,
  log: Log,
): { readonly result: RunResult; readonly failure: AmbitError | undefined } {
  try {
    const receipt = receiptFor(request, plan, outcome);
    return { result: resultOf(request, plan, outcome, receipt), failure: outcome.failure };
  } catch (thrown) {
    log.error({ runId: outcome.runId, error: thrown }, "the receipt could not be made");
    const failure = outcome.failure ?? asPluginError("An actor of the plan", thrown);
    return {
      result: withoutReceipt(request, plan, { ...outcome, failure }, log),
      failure,
    };
  }
}

function withoutReceipt(
  request: RunRequest,
  plan: AcceptedPlan,
  outcome: RunOutcome & { readonly failure: AmbitError },
  log: Log,
): RunResult {
  try {
    return resultOf(request, plan, outcome, undefined);
  } catch (thrown) {
    const { runId, failure } = outcome;
    log.error({ runId, error: thrown }, "the result could not be made");
    const { code, retryable } = failure.toFailure();
    const error = `The run failed (${code}); the runner's log has the cause.`;
    return {
      ok: false,
      runId,
      events: [],
      sessionId: outcome.sessionName,
      error,
      failure: { code, retryable },
      errorDetail: errorDetailOf({ code, retryable }, error),
    };
  }
}

/** The run's one result. Pure. */
function resultOf(
  request: RunRequest,
  plan: AcceptedPlan,
  outcome: RunOutcome,
  receipt: Receipt | undefined,
): RunResult {
  const { agent } = heldIn(outcome.progress);
  const { record, redactor, warnings } = outcome.events;
  const failure = cancelledByCaller(outcome.failure) ? undefined : outcome.failure;
  const { usage } = record;
  const { output } = outcome;
  return {
    ok: failure === undefined,
    runId: outcome.runId,
    output: failure === undefined || output !== "" ? output : undefined,
    messages: output === "" ? undefined : [{ role: "assistant", content: output }],
    events: [...record.events],
    usage,
    stopReason: failure === undefined ? record.stopReason : undefined,
    capabilities: agent?.capabilities,
    sessionId: outcome.sessionName,
    model: agent?.model === undefined ? request.model : redactor.text(agent.model),
    traceId: outcome.events.observation.traceId,
    error: failure === undefined ? undefined : redactor.text(failure.message),
    failure:
      failure === undefined ? undefined : { ...redactor.value(failure.toFailure()), code: failure.code },
    errorDetail:
      failure === undefined ? undefined : redactor.value(errorDetailOf(failure.toFailure(), failure.message)),
    sandbox: plan.sandbox.actor.name,
    warnings: redactor.value(warnings.list),
    receipt,
  };
}

/** Why the run ended; undefined when it failed, or its agent gave no reason. Pure. */
export function stopReasonOf(end: TurnEnd): string | undefined {
  if (end.how === "failed") return cancelledByCaller(end.failure) ? "cancelled" : undefined;
  return end.how === "paused" ? "paused" : end.stopReason;
}

function receiptFor(
  request: RunRequest,
  plan: AcceptedPlan,
  { progress, events, sessionName, outputs, filledWith: { sources, environment }, fork }: RunOutcome,
): Receipt | undefined {
  const { session, agent, history } = heldIn(progress);
  if (session === undefined) return undefined;
  const { sandbox } = session;
  const { decisions, redactor } = events;
  const unasked = unaskedClasses(request, plan.harness.actor);
  const ofAgent = Object.entries(agent?.evidence ?? {}).map(([fact, value]) => [`agent.${fact}`, value]);
  return receiptOf(plan, {
    confinement: sandbox.confinement,
    evidence: redactor.value({ ...sandbox.evidence, ...Object.fromEntries(ofAgent) }),
    visibleCredentials: [...visibleCredentials(request, plan)],
    decisions: {
      allowed: decisions.allowed,
      refused: decisions.refused,
      failed: decisions.failed || undefined,
    },
    session: { id: sessionName, history },
    unaskedTools: unasked.length === 0 ? undefined : [...unasked],
    sources: sources === undefined ? undefined : redactor.value([...sources]),
    environment,
    fork,
    ports: request.ports?.length ? [...request.ports] : undefined,
    outputs: redactor.value(outputs),
  });
}

/** What the run has: no session if the sandbox didn't open, no agent if it didn't start. */
function heldIn(progress: Progress): {
  readonly session?: Session;
  readonly agent?: Agent;
  readonly history: Receipt["session"]["history"];
} {
  return {
    history: "new",
    ...(progress.name === "starting" || progress.name === "streaming" ? progress : {}),
  };
}
