import { LimitsNotApplied } from "../open/start-machine.js";
import { ServiceFailure } from "../platform/failure.js";

/** Whether a failed opening contradicts the canary's findings, so that it has to run again. */
export function isContradiction(error: unknown): boolean {
  return error instanceof LimitsNotApplied || isRestriction(error);
}

/** Whether the organisation may not restrict a sandbox's network. */
export function isRestriction(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof ServiceFailure && cause.kind === "restricted";
}
