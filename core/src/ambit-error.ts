import type { Failure, FailureCode } from "./contract/index.js";

const brand = "ambit.error";

/** The HTTP status of a response that failed with this code, the first time and when it is given again. */
export const failureStatuses = {
  request_invalid: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  not_found: 404,
  command_executed: 409,
  session_elsewhere: 409,
  interaction_expired: 410,
  boundary_refused: 422,
  idempotency_key_reused: 422,
  source_failed: 422,
  setup_failed: 422,
  at_capacity: 429,
  session_in_use: 429,
  run_cancelled: 499,
  internal: 500,
  plugin_broke_contract: 500,
  plugin_load_failed: 500,
  sandbox_failed: 502,
  harness_failed: 502,
  model_failed: 502,
  outputs_failed: 502,
  runner_lost: 502,
  snapshot_failed: 502,
  store_failed: 503,
  run_timed_out: 504,
} as const satisfies Readonly<Record<FailureCode, number>>;
export type FailureStatus = (typeof failureStatuses)[FailureCode];

/**
 * The base of the error catalogue, which has a class for each person who must act. `message` is safe to show to the caller;
 * `cause` is for the log and never leaves the process.
 */
export abstract class AmbitError extends Error {
  /** Recognised across copies of this package: a plugin may use its own copy. */
  get [brand](): true {
    return true;
  }
  abstract readonly code: FailureCode;
  /** The HTTP status, where the response hasn't begun. */
  get status(): FailureStatus {
    return failureStatuses[this.code];
  }
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean = false;

  override get name(): string {
    return this.constructor.name;
  }

  /** The part of the result that a program reads. */
  toFailure(): Failure {
    return { code: this.code, retryable: this.retryable };
  }
}

export function isAmbitError(thrown: unknown): thrown is AmbitError {
  return thrown instanceof Error && brand in thrown;
}
