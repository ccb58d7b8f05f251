import {
  errorDetailOf,
  type FailedResult,
  type Failure,
  messageOf,
  type PlanResponse,
  receiptOf,
  toAmbitError,
} from "@ambit/core";
import type { AdmittedRun } from "@ambit/runner";

/** A body or a file that isn't JSON; the message says where it breaks off. */
export class MalformedJson extends Error {
  override readonly name = "MalformedJson";
}

/**
 * The text as JSON; an empty one is `{}`.
 * @param where for the message: "" or " on stdin".
 * @throws MalformedJson
 */
export function parseJson(text: string, where = ""): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformed(cause, where);
  }
}

/** @param cause of `JSON.parse`. */
export function malformed(cause: unknown, where = ""): MalformedJson {
  // V8's message quotes a few characters around the fault, which the caller itself sent.
  return new MalformedJson(`Invalid JSON${where}: ${messageOf(cause)}`, { cause });
}

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

/** The response of `POST /plan` and `ambit plan` for a request that may run: its receipt, as far as a plan knows it. */
export function planResponse({ plan, warnings }: AdmittedRun): PlanResponse {
  const { sandbox, enforcement, required, guarantees, actors, accepted } = receiptOf(plan, {
    confinement: "unconfined",
    evidence: {},
    visibleCredentials: [],
    decisions: { allowed: 0, refused: 0 },
    session: { id: "", history: "new" },
  });
  return {
    ok: true,
    plan: { sandbox, enforcement, required, guarantees, actors, accepted },
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  };
}
