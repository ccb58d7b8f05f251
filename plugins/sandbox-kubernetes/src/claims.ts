import type { Verification } from "@ambit/attacks";
import { type ActorGap, type Boundary, type Capability, capabilities } from "@ambit/core/plugin";

/**
 * What pods may enforce. The probe finds what a cluster can't. No pod has a limit of processes of its own: nodes set one for
 * all their pods.
 */
export const claims: readonly Capability[] = capabilities.filter(
  (capability) => capability !== "resources.processes",
);

export const isNetwork = (capability: Capability) => capability.startsWith("network.");

/** Why an attack, by its id, breaks no promise of pods. */
export const exempt: NonNullable<Verification["exempt"]> = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume that only root on the node can enter, and inside no program gains privileges",
};

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
