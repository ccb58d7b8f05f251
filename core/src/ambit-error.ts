import type { Failure, FailureCode } from "./contract/index.js";

const brand = "ambit.error";

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
