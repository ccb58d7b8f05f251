import { createHash } from "node:crypto";
import { labelsOf, type Ownership } from "@ambit/backend-kit";
import type { KubernetesConfig } from "../config.js";

/** By it, policies tell pods without a network boundary from all others. */
export const networkLabel = "ambit-network";
/** By these, a session's policies tell its gate and its sandbox from all others. */
const [gateLabel, roleLabel] = ["ambit-gate", "ambit-role"];

type Owned = Pick<Ownership, "session" | "replica">;
type Labels = Readonly<Record<string, string>>;

/** Two runners may have a session of the same name. */
export const podName = ({ session, replica }: Owned) =>
  `ambit-${createHash("sha256").update(`${replica} ${session}`).digest("hex").slice(0, 20)}`;

export const gateName = (owner: Owned) => `${podName(owner)}-gate`;

/** What a sandbox with a gate has besides its other labels, and its gate. */
export const sandboxOfGate = (gate: string): Labels => ({ [gateLabel]: gate, [roleLabel]: "sandbox" });
export const gateOfSandbox = (gate: string): Labels => ({ [gateLabel]: gate, [roleLabel]: "gate" });
/** The gate's name among such labels. */
export const gateOf = (labels: Labels): string | undefined => labels[gateLabel];

/** Label values are shorter than some names of sessions. */
export function podLabels(owner: Ownership): Labels {
  const isValue = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(owner.session);
  return labelsOf(isValue ? owner : { ...owner, session: podName(owner) });
}

/** Of a sandbox's pod. */
export const sandboxLabels = (
  owner: Ownership,
  { egress }: Pick<KubernetesConfig, "egress">,
  isNetworkOpen: boolean,
): Labels => ({
  ...podLabels(owner),
  [networkLabel]: isNetworkOpen ? "open" : "closed",
  ...(egress === "gate" ? sandboxOfGate(gateName(owner)) : {}),
});

/** Of its gate's. No policy leaves it open. */
export const gateLabels = (owner: Ownership): Labels => ({
  ...podLabels(owner),
  [networkLabel]: "gate",
  ...gateOfSandbox(gateName(owner)),
});
