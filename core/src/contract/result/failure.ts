import { z } from "zod";
import { capabilitySchema } from "../capability.js";

/** Something in the request that can't be used: where, why, and what to do instead. */
export const issueSchema = z.strictObject({
  /** The path of the field, such as `customTools[2].callRef`; empty for the body itself. */
  path: z.string(),
  message: z.string(),
});
export type Issue = z.infer<typeof issueSchema>;

/** A capability that the boundary requires and an actor doesn't cover, with its fix. */
export const gapSchema = z.strictObject({
  /** The name of the backend, executor, harness or MCP server. */
  actor: z.string(),
  capability: capabilitySchema,
  reason: z.string(),
  fix: z.string(),
  /** The tool or MCP server that brings the actor into the run. */
  subject: z.string().optional(),
  /** The part of the request that requires the capability: `sandboxPermission.filesystem is "workspace"`. */
  requiredBy: z.string().optional(),
});
export type Gap = z.infer<typeof gapSchema>;

export const failureCodeSchema = z.enum([
  "request_invalid",
  "unauthorized",
  "not_found",
  "boundary_refused",
  "at_capacity",
  "session_in_use",
  "command_executed",
  "plugin_load_failed",
  "plugin_broke_contract",
  "sandbox_failed",
  "harness_failed",
  "model_failed",
  "budget_exceeded",
  "run_cancelled",
  "run_timed_out",
  "runner_lost",
  "store_failed",
  "outputs_failed",
  "source_failed",
  "snapshot_failed",
  "setup_failed",
  "session_elsewhere",
  "idempotency_key_reused",
  "interaction_expired",
  "internal",
]);
export type FailureCode = z.infer<typeof failureCodeSchema>;

/** A failure in the words of the runner that Ambit replaces, beside `failure`. */
export const errorDetailSchema = z.strictObject({
  /** The code that that runner's clients know, such as `session_turn_in_use`, or the failure's own code. */
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
});
export type ErrorDetail = z.infer<typeof errorDetailSchema>;

/** Why a source couldn't be put into the workspace, or a commit couldn't be pushed. */
export const sourceFailureReasonSchema = z.enum([
  "invalid",
  "digest_mismatch",
  "too_large",
  "authentication",
  "forbidden",
  "not_found",
  "ref_missing",
  "unreachable",
  "timed_out",
  "program_missing",
  "checkout_failed",
  "remote_moved",
  "push_failed",
  "pull_request_failed",
  "base_unknown",
]);
export type SourceFailureReason = z.infer<typeof sourceFailureReasonSchema>;

export const failureSchema = z.strictObject({
  code: failureCodeSchema,
  /** Whether the same request may succeed later without a change. */
  retryable: z.boolean(),
  /** The HTTP status of the model provider's response, if known. Present only with `model_failed`. */
  upstreamStatus: z.int().min(100).max(599).optional(),
  /** Present with `source_failed`, and with `outputs_failed` if a commit couldn't be pushed. */
  reason: sourceFailureReasonSchema.optional(),
  gaps: z.array(gapSchema).optional(),
  issues: z.array(issueSchema).optional(),
  /** The address of the replica that has the session, such as `http://10.0.0.5:8765`. Present with `session_elsewhere`. */
  address: z.string().optional(),
});
export type Failure = z.infer<typeof failureSchema>;

/** Failures that clients of the runner that Ambit replaces know by another code. */
const codes: Partial<Record<FailureCode, string>> = {
  at_capacity: "runner_capacity",
  session_in_use: "session_turn_in_use",
  runner_lost: "execution_lost",
  model_failed: "provider_error",
  internal: "internal_error",
};

/** A failure as clients of the runner that Ambit replaces read it. Pure. */
export function errorDetailOf({ code, retryable, upstreamStatus }: Failure, message: string): ErrorDetail {
  const detail = upstreamStatus === 429 ? "rate_limited" : codes[code];
  return { code: detail ?? code, message, retryable };
}
