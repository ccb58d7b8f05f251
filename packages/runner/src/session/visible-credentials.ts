import { type AcceptedPlan, carriedBy, stillVisible } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";

/** Names of the request's credentials that the agent can read in its sandbox. */
export function visibleCredentials(request: RunRequest, plan: AcceptedPlan): readonly string[] {
  return stillVisible(plan.harness.actor, request, [
    ...carriedBy(plan.gateway),
    ...plan.hidden.map(({ name }) => name),
  ]);
}
