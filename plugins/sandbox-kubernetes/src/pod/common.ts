import { createHash } from "node:crypto";
import { labelsOf, type Ownership } from "@ambit/backend-kit";
import type { V1ObjectMeta, V1OwnerReference, V1PodSpec } from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";

/** By it, policies tell pods without a network boundary from all others. */
export const networkLabel = "ambit-network";
/** By these, a session's policies tell its gate and its sandbox from all others. */
const [gateLabel, roleLabel] = ["ambit-gate", "ambit-role"];

/** The Lease that a pod ends with. */
export interface LeaseReference {
  readonly name: string;
  readonly uid: string;
}

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

/** Autoscalers leave it where it is. */
export const staysAnnotations = {
  "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
  "karpenter.sh/do-not-disrupt": "true",
};

const leaseOwner = (lease: LeaseReference): V1OwnerReference => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  ...lease,
  controller: false,
  blockOwnerDeletion: false,
});

/** Of every pod. Pure. */
export const metadataOf = (name: string, lease: LeaseReference, config: KubernetesConfig): V1ObjectMeta => ({
  name,
  namespace: config.namespace,
  annotations: staysAnnotations,
  ownerReferences: [leaseOwner(lease)],
});

/** Where every pod may run, how long, and with nothing of the cluster. Pure. */
export const placementOf = (config: KubernetesConfig): Omit<V1PodSpec, "containers"> => ({
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 1,
  activeDeadlineSeconds: config.ttlMinutes * 60,
  ...(config.runtimeClass === undefined ? {} : { runtimeClassName: config.runtimeClass }),
  ...(Object.keys(config.nodeSelector).length === 0 ? {} : { nodeSelector: config.nodeSelector }),
  ...(config.pullSecrets.length === 0
    ? {}
    : { imagePullSecrets: config.pullSecrets.map((name) => ({ name })) }),
  tolerations: [
    ...config.tolerations.map(({ value, effect, ...rest }) => ({
      ...rest,
      ...(value === undefined ? {} : { value }),
      ...(effect === undefined ? {} : { effect }),
    })),
    // A node that is away is noticed sooner than by the cluster's default of five minutes.
    ...["not-ready", "unreachable"].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 30,
    })),
  ],
  securityContext: { seccompProfile: { type: "RuntimeDefault" } },
});
