import type { FailedResult, Schema } from "./api.js";

export type Gap = Schema<"Gap">;
export type Issue = Schema<"Issue">;

/** A failure's code on the wire, or what happened on the way: no server answers, or its answer isn't Ambit's. */
export type AmbitErrorCode = Schema<"Failure">["code"] | "unreachable" | "invalid_response";

/** A request that the server refused, a run that failed, or a server that can't be reached. */
export class AmbitError extends Error {
  override readonly name = "AmbitError";
  readonly code: AmbitErrorCode;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  /** The response's status; undefined without a response, and for a run that failed within its stream. */
  readonly status: number | undefined;
  /** Milliseconds that the server asks to wait before the next attempt. */
  readonly retryAfterMs: number | undefined;
  /** What can't be guaranteed, each with its fix, where the boundary was refused. */
  readonly gaps: readonly Gap[];
  /** What is wrong with the request, each with its path. */
  readonly issues: readonly Issue[];
  /** The failed run's whole result, if it came to one. */
  readonly result: FailedResult | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly code: AmbitErrorCode;
      readonly retryable: boolean;
      readonly status?: number;
      readonly retryAfterMs?: number | undefined;
      readonly result?: FailedResult;
    },
  ) {
    super(message, options);
    this.code = options.code;
    this.retryable = options.retryable;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.result = options.result;
    this.gaps = options.result?.failure.gaps ?? [];
    this.issues = options.result?.failure.issues ?? [];
  }
}

/** @param status of the response; undefined for a run that failed within its stream. */
export function failureOf(result: FailedResult, status?: number, retryAfterMs?: number): AmbitError {
  const { code, retryable } = result.failure;
  return new AmbitError(result.error, {
    code,
    retryable,
    retryAfterMs,
    result,
    ...(status === undefined ? {} : { status }),
  });
}

export function isFailedResult(value: unknown): value is FailedResult {
  return (
    typeof value === "object" &&
    value !== null &&
    "ok" in value &&
    value.ok === false &&
    "failure" in value &&
    typeof value.failure === "object" &&
    value.failure !== null &&
    "code" in value.failure
  );
}
