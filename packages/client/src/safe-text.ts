import type { FailedResult, RunResult } from "./api.js";

type Code = FailedResult["failure"]["code"];

/**
 * Failures in words for the user of a chat, who can't act on the operator's: those name programs, hosts and settings. The run's
 * log and result keep them, by the run's id.
 */
const sentences: Readonly<Partial<Record<Code, string>>> = {
  boundary_refused: "This chat's agent can't run here: the server can't guarantee what it must not do.",
  at_capacity: "The server is busy. Try again in a moment.",
  session_in_use: "The chat is still answering an earlier message.",
  session_elsewhere: "The chat goes on at another server. Try again in a moment.",
  model_failed: "The model's provider failed. Try again in a moment.",
  budget_exceeded: "The budget of this chat is used up.",
  run_timed_out: "The answer took too long and was stopped.",
  run_cancelled: "The answer was stopped.",
  runner_lost: "The server that was answering has failed. Send the message again.",
  source_failed: "The files that this chat begins with couldn't be fetched.",
  setup_failed: "The preparation of this chat's files failed.",
  outputs_failed: "The files of this answer couldn't be kept.",
};

/** What its caller can mend, in Ambit's own words: they name the caller's own fields. */
const ownWords: ReadonlySet<Code> = new Set([
  "request_invalid",
  "unauthorized",
  "not_found",
  "interaction_expired",
  "idempotency_key_reused",
]);

/** Why a run failed, safe to show in a browser. Pure. */
export function safeText({
  error,
  failure,
  runId,
}: Pick<RunResult, "error" | "failure"> & { readonly runId?: string | undefined }): string {
  const code = failure?.code ?? "internal";
  if (error !== undefined && ownWords.has(code)) return error;
  const text = sentences[code] ?? "The agent failed. Try again.";
  return runId === undefined ? text : `${text} (Run ${runId})`;
}
