import type { Capability, Finding } from "@ambit/core/plugin";
import { messageOf } from "@ambit/core/plugin";
import { Inconclusive, NotProven, type TrialOutcome } from "./trial.js";

/** The fix for an error that doesn't name one. @param capability that it prevented from being proven. */
export type FixFor = (error: unknown, capability: Capability) => string;

/** One finding for each claim: proven if at least one trial covers it, and every trial that does proved it. Pure. */
export function findingsOf<Claim extends Capability>(
  claims: readonly Claim[],
  outcomes: readonly TrialOutcome<Claim>[],
  fixFor: FixFor,
): readonly Finding[] {
  return claims.map((capability) => {
    const seen = outcomes.flatMap((outcome) => outcome.get(capability) ?? []);
    const failures = seen.filter((one) => typeof one !== "string");
    // What was seen to work says more than what couldn't be tried, and has another fix.
    const failed = failures.find(isObservation) ?? failures[0];
    if (failed !== undefined) return unproven(capability, failed, fixFor);
    if (seen.length === 0) return unproven(capability, new NotProven("nothing was tried"), fixFor);
    return { capability, proven: true, how: seen.join("; ") };
  });
}

const isObservation = (failure: Error) => failure instanceof NotProven && !(failure instanceof Inconclusive);

export function unproven(capability: Capability, error: unknown, fixFor: FixFor): Finding {
  const fix = (error instanceof NotProven ? error.fix : undefined) ?? fixFor(error, capability);
  const message = messageOf(error);
  // A run's error ends with its fix, which a finding has separately.
  const reason = message.endsWith(`: ${fix}`) ? message.slice(0, -fix.length - 2) : message;
  return { capability, proven: false, reason, fix };
}
