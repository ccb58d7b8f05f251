import type { Ownership } from "@ambit/backend-kit";
import type { V1Pod } from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter.js";
import {
  gateLabels,
  gateName,
  type LeaseReference,
  mebibytes,
  metadataOf,
  placementOf,
  pollSeconds,
  processors,
  waitUntilIdle,
  wholeSeconds,
} from "./manifest.js";

export const gateContainer = "gate";
/** At which a gate listens. Its user may open no port below 1024. */
export const gatePort = 8_443;
/** Neither root nor a user of any sandbox's process. */
export const gateUser = 65_532;

const reserved = { memoryMb: 64, cpus: 0.05 };

/** Ends when nothing else has run in the pod for a while: the gate's program ends when its runner is gone. */
const script = `idle=$1; step=$2
${waitUntilIdle}`;

export interface GateManifestOptions {
  readonly owner: Ownership;
  readonly podShape: PodShape;
  readonly lease: LeaseReference;
  readonly config: KubernetesConfig;
}

/**
 * The pod of a session's gate: with the cluster's names and network, and nothing of a run, neither in its specification nor on
 * a disk. What it may do comes over a stream. Pure.
 */
export function gateManifestOf({ owner, podShape, lease, config }: GateManifestOptions): V1Pod {
  const { memoryMb, cpus } = config.gate;
  const { securityContext, ...placement } = placementOf(config);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadataOf(gateName(owner), lease, config), labels: gateLabels(owner) },
    spec: {
      ...placement,
      securityContext: {
        ...securityContext,
        runAsNonRoot: true,
        runAsUser: gateUser,
        runAsGroup: gateUser,
      },
      hostname: "gate",
      ...(podShape === "user-namespace" ? { hostUsers: false } : {}),
      // A name with a dot is first asked for as it is: the rules name hosts in full.
      dnsPolicy: "ClusterFirst",
      dnsConfig: { options: [{ name: "ndots", value: "1" }] },
      containers: [
        {
          name: gateContainer,
          image: config.image,
          imagePullPolicy: config.pull,
          command: ["/bin/sh", "-c", script, "sh", wholeSeconds(config.openTimeoutMs), `${pollSeconds}`],
          workingDir: "/",
          env: [{ name: "LD_PRELOAD", value: "" }],
          resources: {
            limits: { memory: mebibytes(memoryMb), cpu: processors(cpus) },
            requests: {
              memory: mebibytes(Math.min(reserved.memoryMb, memoryMb)),
              cpu: processors(Math.min(reserved.cpus, cpus)),
            },
          },
          terminationMessagePath: "/dev/termination-log",
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    },
  };
}
