import type { Registry } from "@ambit/core";
import { olderNamesOf } from "@ambit/runner";
import type { SubscriptionStatus } from "./http/route-schemas.js";

/** What `GET /subscription-status` says. Waits for no probe: callers ask it in the time that a page takes to load. */
export function subscriptionStatus(registry: Registry): SubscriptionStatus {
  const names = registry
    .candidatesAsSeen()
    .harnesses.flatMap(({ actor: { id, aliases } }) => [id, ...aliases, ...olderNamesOf(id)]);
  return {
    version: 1,
    harnesses: Object.fromEntries(names.map((name) => [name, { state: "not_configured" as const }])),
  };
}
