import type { AgentEventOf } from "@ambit/core/contract";

/**
 * The result of a call that has none at the end of the turn. The words before the colon are part of the wire: user
 * interfaces show them as "skipped" or "unknown", and text that begins with one isn't an answer.
 */
export const unsettledTexts = {
  deferred:
    "DEFERRED_NOT_EXECUTED: the turn paused for the user before this call ran. Call it again if it is still needed.",
  moved: "DEFERRED_NOT_EXECUTED: the user is asked about this call first. It continues under another id.",
  unknown:
    "APPROVED_EXECUTION_RESULT_UNKNOWN: this call was allowed and may have run, but the turn paused before its result was seen. Don't take it as failed, and don't repeat what has side effects.",
  interrupted:
    "INTERRUPTED_BY_USER: the user stopped the turn before this call had a result; it may have run. Don't repeat it unless the user asks.",
} as const;

const prefixes = Object.values(unsettledTexts).map((text) => text.slice(0, text.indexOf(":")));

/** Whether an output only states that there was none. */
export function isUnsettled(output: unknown): boolean {
  return typeof output === "string" && prefixes.some((prefix) => output.startsWith(prefix));
}

export function unsettled(
  id: string,
  why: Exclude<keyof typeof unsettledTexts, "moved">,
): AgentEventOf<"tool_result"> {
  return { type: "tool_result", id, output: unsettledTexts[why], isError: true, settled: why };
}

/** The result of a call that continues under the id of the question about it. */
export function moved(id: string, movedTo: string): AgentEventOf<"tool_result"> {
  const output = unsettledTexts.moved;
  return { type: "tool_result", id, output, isError: true, settled: "deferred", movedTo };
}

/** The beginning of every id that the runner issues for a question. */
export const issuedPrefix = "ask_";

/** Whether an id looks like one of ours. An agent's own id must not. */
export function looksIssued(id: string): boolean {
  return id.startsWith(issuedPrefix);
}
