import { type AmbitError, cancelledByCaller } from "@ambit/core";
import type { FailureCode, Receipt, RunResult } from "@ambit/core/contract";
import type { Agent } from "@ambit/core/plugin";
import type { TurnEnding } from "../call/reports/approved-calls.js";
import type { Session } from "../session/session.js";

/**
 * How far a run has got, and what it holds. It is `admitted` until its records are read, and `starting` once it has its
 * session.
 */
export type Progress =
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
export type AgentAfterTurn = "kept" | "conversation" | "nothing";

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
