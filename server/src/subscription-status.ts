import type { Registry } from "@ambit/core";
import type { SubscriptionStatus } from "./http/route-schemas.js";

/** The response of `GET /subscription-status`. Waits for no probe, since callers request it while a page loads. */
export function subscriptionStatus(registry: Registry): SubscriptionStatus {
  const further = registry.dialects.flatMap(({ harnesses = {} }) => Object.entries(harnesses));
  const names = registry
    .knownCandidates()
    .harnesses.flatMap(({ actor: { id, aliases } }) => [
      id,
      ...aliases,
      ...further.flatMap(([name, meant]) => (meant === id ? [name] : [])),
    ]);
  return {
    version: 1,
    harnesses: Object.fromEntries(names.map((name) => [name, { state: "not_configured" as const }])),
  };
}
