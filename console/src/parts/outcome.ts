import type { ListedRun, Receipt, RunInfo } from "../server/client.js";

/** What a run has come to, as colour and word. */
export interface Outcome {
  readonly tone: "good" | "bad" | "wait" | "accent" | "muted";
  readonly word: string;
  readonly kind: "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
}

type Result = NonNullable<RunInfo["result"]>;

/** The part of a result that decides on its outcome. */
type ResultInShort = Pick<Result, "ok" | "stopReason"> & { readonly failure?: { readonly code: string } };

/** Of a run in a list. Pure. */
export function outcomeOfListed({ state, outcome, summary, openQuestions }: ListedRun): Outcome {
  const { stopReason, failure } = summary ?? {};
  const result = outcome && {
    ok: outcome !== "failed",
    stopReason: stopReason ?? (outcome === "completed" ? undefined : outcome),
    ...(failure === undefined ? {} : { failure: { code: failure } }),
  };
  return outcomeOf(state, result, openQuestions);
}

/** @param openQuestions of this run. Pure. */
export function outcomeOf(
  state: RunInfo["state"],
  result: ResultInShort | undefined,
  openQuestions: number,
): Outcome {
  if (state === "queued") return { tone: "muted", word: "Queued", kind: "queued" };
  if (openQuestions > 0)
    return {
      tone: "wait",
      word: openQuestions === 1 ? "Waits for you" : `Waits for ${openQuestions} answers`,
      kind: "waiting",
    };
  if (state === "running") return { tone: "accent", word: "Running", kind: "running" };
  if (result === undefined) return { tone: "muted", word: "Ended", kind: "completed" };
  if (result.failure?.code === "run_cancelled" || result.stopReason === "cancelled")
    return { tone: "muted", word: "Cancelled", kind: "cancelled" };
  if (!result.ok) return { tone: "bad", word: "Failed", kind: "failed" };
  if (result.stopReason === "paused") return { tone: "wait", word: "Paused", kind: "waiting" };
  if (result.stopReason === "end_turn" || result.stopReason === undefined)
    return { tone: "good", word: "Completed", kind: "completed" };
  return { tone: "wait", word: `Stopped: ${result.stopReason.replaceAll("_", " ")}`, kind: "completed" };
}

/** The part of a receipt that says how far a run was confined. */
export type Confinement = Pick<Receipt, "confinement"> & {
  readonly required: { readonly length: number };
  readonly accepted: { readonly length: number };
};

/** How far a run was confined: `none` where nothing was, or nothing was demanded. Pure. */
export function confinementOf(receipt: Confinement | undefined): {
  readonly kind: "unknown" | "unconfined" | "open" | "gaps" | "confined";
  readonly words: string;
} {
  if (receipt === undefined) return { kind: "unknown", words: "" };
  if (receipt.confinement === "unconfined") return { kind: "unconfined", words: "Unconfined" };
  if (receipt.required.length === 0) return { kind: "open", words: "No boundary" };
  if (receipt.accepted.length > 0) return { kind: "gaps", words: "Boundary with gaps" };
  return { kind: "confined", words: "Confined" };
}
