import type { Failure, FailureCode } from "./contract/index.js";

const brand = "ambit.error";

/**
 * The one catalogue: a class for each person who must act. `message` is safe to show to the caller;
 * `cause` is kept for the log and never leaves the process.
 */
export abstract class AmbitError extends Error {
  /** Known across copies of this package: a plugin's own copy throws the same errors. */
  get [brand](): true {
    return true;
  }
  abstract readonly code: FailureCode;
  /** HTTP status of an answer that hasn't begun yet. */
  abstract readonly status: 400 | 401 | 402 | 404 | 409 | 410 | 422 | 429 | 499 | 500 | 502 | 503 | 504;
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
