import { type FailedResult, toAmbitError } from "@ambit/core";

/** What was thrown before a run began, in the shape of a run's result. */
export function failedResult(thrown: unknown): FailedResult {
  const error = toAmbitError(thrown);
  return { ok: false, error: error.message, failure: error.toFailure(), events: [] };
}
