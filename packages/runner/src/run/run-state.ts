/** How far a run has got, how it ended, and what follows from that: its result, its session's agent, what is probed again. */

import {
  type AcceptedPlan,
  type AmbitError,
  asPluginError,
  cancelledByCaller,
  errorDetailOf,
  receiptOf,
} from "@ambit/core";
import type {
  FailureCode,
  ForkReceipt,
  OutputsReceipt,
  Receipt,
  RunRequest,
  RunResult,
} from "@ambit/core/contract";
import type { Agent, Log } from "@ambit/core/plugin";
import type { TurnEnding } from "../call/answer.js";
import { unaskedClasses } from "../call/permissions.js";
import type { RunEvents } from "../events/run-events.js";
import type { FilledWorkspace } from "../operator.js";
import type { Session } from "../session/session.js";
import { visibleCredentials } from "../session/sessions.js";

/**
 * How far a run has got, and what it holds. It is `admitted` until its records are read, and `starting` once it has its
 * session.
 */
type Progress =
  | { readonly name: "admitted" | "opening" }
  | {
      readonly name: "starting";
      readonly session: Session;
      /** Whether an agent has worked in this session before. */
      readonly isReused: boolean;
    }
  | {
      readonly name: "streaming";
      readonly session: Session;
      readonly agent: Agent;
      readonly history: Receipt["session"]["history"];
    };

/** How a run's turn ended. A failure wins over a pause, and the first failure over later ones. */
export type TurnEnd =
  | { readonly how: "completed"; readonly stopReason: string | undefined }
  | { readonly how: "paused" }
  | { readonly how: "failed"; readonly failure: AmbitError };

export type RunState =
  | Progress
  | { readonly name: "closing"; readonly progress: Progress; readonly end: TurnEnd }
  | { readonly name: "ended"; readonly progress: Progress; readonly result: RunResult };

/** How far a run got. `reusing`: it couldn't start its agent, in a session in which one had worked before. */
export type RunStage = "starting" | "reusing" | "started";

const successors: { readonly [Name in RunState["name"]]: readonly RunState["name"][] } = {
  admitted: ["opening"],
  opening: ["starting", "closing"],
  starting: ["streaming", "closing"],
  streaming: ["closing"],
  closing: ["ended"],
  ended: [],
};

/** The next state. Pure. @throws Error for a transition that isn't allowed, which is a bug */
export function advanceRun(from: RunState, to: RunState): RunState {
  if (successors[from.name].includes(to.name)) return to;
  throw new Error(`A run can't go from '${from.name}' to '${to.name}'.`);
}

/** What a run holds, or held when it closed. Pure. */
export function progressOf(state: RunState): Progress {
  return state.name === "closing" || state.name === "ended" ? state.progress : state;
}

/** Pure. */
export function stageOf(progress: Progress): RunStage {
  if (progress.name === "streaming") return "started";
  return progress.name === "starting" && progress.isReused ? "reusing" : "starting";
}

/** The state of a run that has just acquired its session. */
export function startingIn(session: Session): Progress {
  return { name: "starting", session, isReused: session.conversation !== undefined };
}

/**
 * What the session's next run gets of the agent that had this turn.
 * - `kept`: the agent itself, with its conversation.
 * - `conversation`: a new agent, which loads the conversation.
 * - `nothing`: a new agent with a new conversation.
 */
type AgentAfterTurn = "kept" | "conversation" | "nothing";

/** Failures after which an agent can't be trusted with another turn, even if it is idle. */
const agentFailures: ReadonlySet<FailureCode> = new Set([
  "harness_failed",
  "sandbox_failed",
  "plugin_broke_contract",
  "internal",
]);

/**
 * How a run's end decides on the session's agent. It never decides on the session's files, which depend only on the
 * sandbox. Pure.
 *
 * @param isIdle whether the agent lives, and has no turn or ended it itself, as it does when it is cancelled in time.
 */
export function agentAfterTurn(end: TurnEnd, isIdle: boolean): AgentAfterTurn {
  if (end.how !== "failed") return isIdle ? "kept" : "conversation";
  return isIdle && !agentFailures.has(end.failure.code) ? "kept" : "nothing";
}

/** What the end of its turn means for an agent's calls. Pure. */
export function endingOf(end: TurnEnd): TurnEnding {
  if (end.how === "completed") return "completed";
  return end.how === "failed" && cancelledByCaller(end.failure) ? "stopped" : "cut_short";
}

/** Pure. */
export function failureOf(end: TurnEnd): AmbitError | undefined {
  return end.how === "failed" ? end.failure : undefined;
}

/** How a run went, once everything is closed. */
interface RunOutcome {
  readonly runId: string;
  readonly events: Pick<
    RunEvents,
    "record" | "redactor" | "decisions" | "stages" | "warnings" | "observation"
  >;
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
    stages: [...events.stages.ended],
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

interface FailedRun {
  readonly plan: Pick<AcceptedPlan, "sandbox" | "harness" | "own">;
  readonly stage: RunStage;
}

type PlannedActor = AcceptedPlan["sandbox" | "harness"]["actor"];

/** Failures after which both the sandbox and the harness are probed again; the others are failures to start. */
const doubtful: ReadonlySet<FailureCode> = new Set(["sandbox_failed", "plugin_broke_contract"]);
const doubtfulAtStart: ReadonlySet<FailureCode> = new Set([...doubtful, "harness_failed", "run_timed_out"]);

/** The plan's actors of the kinds that `actorsToProbeAgain` returns. Pure. */
export function actorsInDoubt(failure: AmbitError, { plan, stage }: FailedRun): ReadonlySet<PlannedActor> {
  const actors = actorsToProbeAgain(failure, stage).flatMap((kind): readonly PlannedActor[] => {
    // The sandbox that failed may be git's own.
    const others = kind === "sandbox" ? [...plan.own.values()].map(({ actor }) => actor) : [];
    return [plan[kind].actor, ...others];
  });
  return new Set(actors);
}

/**
 * The kinds of actors whose evidence a failure puts in doubt. They are probed again before the next plan, and all runs
 * wait for that. A failure that an agent or a request can cause says nothing about the host. Pure.
 */
export function actorsToProbeAgain(failure: AmbitError, stage: RunStage): readonly ("sandbox" | "harness")[] {
  // The agent of an earlier turn may have caused this. The session is closed; only a new one says something about the
  // host.
  if (stage === "reusing") return [];
  const isDoubtful = (stage === "started" ? doubtful : doubtfulAtStart).has(failure.code);
  if (!isDoubtful || concernsSession(failure)) return [];
  // A broken agent says nothing about the sandbox, whose probe takes seconds.
  return failure.code === "harness_failed" ? ["harness"] : ["sandbox", "harness"];
}

function concernsSession(failure: AmbitError): boolean {
  return failure.code === "sandbox_failed" && "concerns" in failure && failure.concerns === "session";
}
