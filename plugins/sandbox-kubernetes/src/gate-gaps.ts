import type { ActorGap, Boundary } from "@ambit/core/plugin";

/** What a gate in a pod of its own can't do of a boundary. Pure. */
export function gateGaps({ network: { mode, rules } }: Boundary): readonly ActorGap[] {
  const loopback = rules.find((rule) => rule.kind === "range" && /^(127\.|::1\/)/.test(rule.cidr));
  if (mode !== "allowlist" || loopback?.kind !== "range") return [];
  return [
    {
      capability: "network.allow-cidr",
      reason: `${loopback.cidr} is the runner's own loopback, and a gate in a pod of its own doesn't reach it`,
      fix: "list an address of the runner's network, or set sandbox-kubernetes' egress to \"bridge\"",
    },
  ];
}
