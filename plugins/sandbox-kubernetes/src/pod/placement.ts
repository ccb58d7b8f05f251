import type { V1ObjectMeta, V1OwnerReference, V1PodSpec } from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";

/** The Lease that a pod ends with. */
export interface LeaseReference {
  readonly name: string;
  readonly uid: string;
}

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
