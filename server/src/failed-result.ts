import { errorDetailOf, type FailedResult, type Failure, toAmbitError } from "@ambit/core";
import { MalformedJson } from "./parse-json.js";

/** An error from before the run, in the shape of a run's result. */
export function failedResult(thrown: unknown): FailedResult {
  if (thrown instanceof MalformedJson) return invalid(thrown.message);
  const error = toAmbitError(thrown);
  return failedBy(error.toFailure(), error.message);
}

/** Whether the server or one of its plugins is at fault, and not the request: its cause belongs into the log. */
export function isServerFault(thrown: unknown): boolean {
  return !(thrown instanceof MalformedJson) && toAmbitError(thrown).status === 500;
}

/** A request whose whole body can't be used. */
export function invalid(message: string): FailedResult {
  const failure: Failure = { code: "request_invalid", retryable: false, issues: [{ path: "", message }] };
  return failedBy(failure, message);
}

export function failedBy(failure: Failure, error: string): FailedResult {
  return { ok: false, error, failure, errorDetail: errorDetailOf(failure, error), events: [] };
}
