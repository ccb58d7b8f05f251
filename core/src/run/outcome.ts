import { type AcceptedPlan, receiptOf } from "../boundary/index.js";
import type { Receipt, RunRequest, RunResult } from "../contract/index.js";
import { type AmbitError, RunCancelled } from "../errors.js";
import type { ActorKinds, Agent } from "../plugin/index.js";
import type { Decisions } from "./decisions.js";
import type { Redactor } from "./redact.js";
import type { Session } from "./session.js";
import type { TurnRecord } from "./turn-record.js";

/** How a run went, once everything is closed. */
export interface RunOutcome {
  readonly runId: string;
  readonly record: TurnRecord;
  readonly redactor: Redactor;
  readonly decisions: Decisions;
  readonly history: Receipt["session"]["history"];
  /** Undefined when the sandbox didn't open. */
  readonly session: Session | undefined;
  /** Undefined when the agent didn't start. */
  readonly agent: Agent | undefined;
  readonly failure: AmbitError | undefined;
  /** Whether the turn waits for the user. */
  readonly paused: boolean;
}

/** What the caller ended itself is no failure to it: `ok`, with the stop reason `cancelled`. */
export function cancelledByCaller(failure: AmbitError | undefined): boolean {
  return failure instanceof RunCancelled && failure.by === "caller";
}

/** The run's one result. Pure. */
export function resultOf(
  request: RunRequest,
  plan: AcceptedPlan<ActorKinds>,
  outcome: RunOutcome,
): RunResult {
  const { record, redactor, session, agent } = outcome;
  const failure = cancelledByCaller(outcome.failure) ? undefined : outcome.failure;
  const { output, usage } = record;
  return {
    ok: failure === undefined,
    runId: outcome.runId,
    output: failure === undefined || output !== "" ? output : undefined,
    messages: output === "" ? undefined : [{ role: "assistant", content: output }],
    events: [...record.events],
    usage,
    stopReason: stopReasonOf(outcome),
    capabilities: agent?.capabilities,
    sessionId: request.sessionId ?? session?.id ?? outcome.runId,
    model: agent?.model ?? request.model,
    traceId: traceIdOf(request),
    error: failure === undefined ? undefined : redactor.text(failure.message),
    failure: failure === undefined ? undefined : redactor.value(failure.toFailure()),
    receipt: session === undefined ? undefined : receiptFor(request, plan, outcome, session),
  };
}

function stopReasonOf({ failure, paused, record }: RunOutcome): string | undefined {
  if (cancelledByCaller(failure)) return "cancelled";
  if (failure !== undefined) return undefined;
  return paused ? "paused" : record.stopReason;
}

function receiptFor(
  request: RunRequest,
  plan: AcceptedPlan<ActorKinds>,
  { agent, decisions, history }: RunOutcome,
  session: Session,
): Receipt {
  const { sandbox } = session;
  const ofAgent = Object.entries(agent?.evidence ?? {}).map(([fact, value]) => [`agent.${fact}`, value]);
  return receiptOf(plan, request, {
    confinement: sandbox.confinement,
    evidence: { ...sandbox.evidence, ...Object.fromEntries(ofAgent) },
    visibleCredentials: plan.harness.actor.visibleCredentials(request),
    decisions: { allowed: decisions.allowed, refused: decisions.refused },
    session: { id: request.sessionId ?? session.id, history },
  });
}

/** The trace that the caller's `traceparent` belongs to (W3C Trace Context: version-traceid-parentid-flags). */
function traceIdOf(request: RunRequest): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(request.context?.propagation?.traceparent ?? "")?.[1];
}
