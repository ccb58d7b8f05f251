import type { AgentEvent, AgentEventOf } from "@ambit/core/contract";
import { canonicalJson } from "../../json-values.js";
import type { Pause } from "../../lifetime/deadlines.js";
import { approvalIn } from "../values/answer.js";
import { type Call, type CallState, waitsForUser } from "../values/call.js";
import { looksIssued, unsettled } from "../values/unsettled.js";

/** A call that is over. */
type Settled = Pick<Call, "publicId" | "state">;

type ToolResult = AgentEventOf<"tool_result">;

/**
 * Whether a result only says that the agent was stopped, or is about to be: the call waits for the user, or has no outcome.
 * Pure.
 */
export function isCutOff(
  state: CallState,
  { isError }: ToolResult,
  pause: Pick<Pause, "isPaused" | "isInEffect">,
): boolean {
  if (state.name === "parked") return pause.isPaused;
  return pause.isInEffect && isError === true && state.name !== "finished" && state.name !== "denied";
}

/** The event for a call's result, as its agent reports it. Pure. */
export function reportedResult(event: ToolResult, { publicId, state }: Settled): ToolResult {
  // The agent gave up before its user answered: what it reports instead is neither a result nor an answer.
  if (waitsForUser(state)) return unsettled(publicId, "deferred");
  return withoutApprovalShape({ ...withOutcome(event, state, looksIssued(publicId)), id: publicId });
}

const withoutResult = "The agent ended its turn before this call had a result.";

/** Whether a result only states that the agent ended its turn without it. Pure. */
export function isWithoutResult(event: AgentEvent): boolean {
  return event.type === "tool_result" && event.output === withoutResult;
}

/** The event for a call without a result at the end of the turn; undefined for none. Pure. */
export function openResult(
  { publicId, state }: Settled,
  why: "paused" | "interrupted" | "ended",
): ToolResult | undefined {
  if (state.name === "finished" || (state.name === "denied" && state.outcome !== undefined))
    return withoutApprovalShape({
      type: "tool_result",
      id: publicId,
      ...ownWords(state),
      ...ownMarks(state),
    });
  if (state.name === "asked") return unsettled(publicId, "deferred");
  if (state.name === "denied") return { ...unsettled(publicId, "deferred"), ...ownMarks(state) };
  if (why === "ended") return { type: "tool_result", id: publicId, output: withoutResult, isError: true };
  if (why === "interrupted") return unsettled(publicId, state.name === "parked" ? "deferred" : "interrupted");
  switch (state.name) {
    case "parked":
      return undefined;
    case "pending":
      return unsettled(publicId, "deferred");
    default:
      return unsettled(publicId, "unknown");
  }
}

/**
 * The runner's output and data in place of the agent's, which wraps them in its own way. A failure of the agent's own,
 * as when it abandoned a call, is kept, but not under an id that the runner issued (`isIssued`). Pure.
 */
export function withOutcome(event: ToolResult, state: CallState, isIssued: boolean): ToolResult {
  const outcome = ownWords(state);
  const gaveUp = !isIssued && event.isError === true && outcome?.isError !== true;
  if (outcome === undefined || gaveUp) return { ...event, ...ownMarks(state) };
  const { data: _wrapping, ...reported } = event;
  const { output, isError } = outcome;
  const failed = isError || event.isError === true ? { isError } : {};
  return { ...reported, output, ...failed, ...ownMarks(state) };
}

function ownWords(state: CallState): { readonly output: string; readonly isError: boolean } | undefined {
  return state.name === "finished" || state.name === "denied" ? state.outcome : undefined;
}

function ownMarks(state: CallState): Partial<ToolResult> {
  if (state.name === "denied") return { denied: true, deniedBy: state.by, settled: "denied", isError: true };
  return state.name === "finished" && state.data !== undefined ? { data: state.data } : {};
}

/** A result that is sent back under an id of the runner must not look like the user's approval. Pure. */
export function withoutApprovalShape(result: ToolResult): ToolResult {
  const { id, data, ...others } = result;
  if (!looksIssued(id)) return result;
  const { output } = others;
  return {
    ...others,
    id,
    ...(isApproval(output) ? { output: canonicalJson(output) } : {}),
    // User interfaces show data in place of the output.
    ...(data === undefined || isApproval(data) ? {} : { data }),
  };
}

function isApproval(output: unknown): boolean {
  return approvalIn({ output, isError: false }) !== undefined;
}
