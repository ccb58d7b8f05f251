import { bridgeSchema } from "@ambit/bridge";
import { z } from "zod";

/** A label's value and part of an object's name: RFC 1123. */
const word = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/, "must be lower-case letters, digits or -, at most 30");
const objectName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, "must be a name of a Kubernetes object");

/** Megabytes (MiB). */
const megabytes = z.int().positive().max(1_048_576);

const target = z.strictObject({
  host: z.string().min(1),
  port: z.int().min(1).max(65_535),
  protocol: z.enum(["tcp", "udp"]).default("tcp"),
});

/** Settings of a deployer for sandboxes in pods. Every default is here. */
export const configSchema = z.strictObject({
  /** The name that requests select it by. Two entries with two names give two runtime classes or clusters. */
  name: word.default("kubernetes"),
  /**
   * Absolute path of a kubeconfig. Default: `KUBECONFIG`, else `~/.kube/config`, else the service account of the pod that the
   * runner is in.
   */
  kubeconfig: z.string().startsWith("/", "must be an absolute path").optional(),
  /** A context of the kubeconfig. Default: its current one. */
  context: z.string().min(1).optional(),
  /** The namespace of the sandboxes, which has nothing else in it. */
  namespace: word.default("ambit-sandboxes"),
  /**
   * Image of the sandboxes, and of their gates: with Node.js 18 or newer (22 with `egress: "gate"`), `/bin/sh`, coreutils, and
   * what agents and tools need.
   */
  image: z.string().min(1),
  /** When nodes pull the image. */
  pull: z.enum(["IfNotPresent", "Always", "Never"]).default("IfNotPresent"),
  /** Names of secrets of the namespace with which nodes pull the image. */
  pullSecrets: z.array(objectName).default([]),
  /** Labels that a node must have. */
  nodeSelector: z.record(z.string().min(1), z.string()).default({}),
  /** Taints of nodes that sandboxes tolerate. */
  tolerations: z
    .array(
      z.strictObject({
        key: z.string().min(1),
        operator: z.enum(["Equal", "Exists"]).default("Equal"),
        value: z.string().optional(),
        effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
      }),
    )
    .default([]),
  /** Runtime class of the pods, such as one of gVisor or Kata. Default: the cluster's runtime. */
  runtimeClass: objectName.optional(),
  /**
   * User namespaces of pods. `auto`: they are used if the probe finds that nodes have them. `require`: without them, no claim
   * is proven. `off`: the namespace may then keep the Pod Security level `baseline`.
   */
  hostUsers: z.enum(["auto", "require", "off"]).default("auto"),
  /** `PATH` inside. Default: the image's. */
  searchPath: z.string().min(1).optional(),
  /** Memory of a pod whose run sets no limit, in MiB. */
  memoryMb: megabytes.default(2_048),
  /** Processors of a pod whose run sets no limit. */
  cpus: z.number().positive().max(1_024).default(1),
  /** What the scheduler reserves for a pod. Default: its limits, so that no pod is evicted for another one. */
  reserve: z
    .strictObject({
      memoryMb: megabytes.optional(),
      cpus: z.number().positive().max(1_024).optional(),
    })
    .prefault({}),
  /** Size of each of the folders in memory that all of a session's processes may write to, such as `/tmp`, in MiB. */
  scratchMb: megabytes.default(256),
  /** Largest disk limit that a run may ask for, in MiB: a workspace with a limit is kept in memory. */
  maxDiskMb: megabytes.default(2_048),
  /**
   * Addresses beyond the cluster that a pod without a boundary reaches. The probe and every pod of the shape `baseline` try
   * them, besides those that it finds in the cluster.
   */
  targets: z.array(target).max(16).default([]),
  /** Milliseconds for the cluster to close the network of a new pod. One that is still open then is refused. */
  settleMs: z.int().positive().max(300_000).default(20_000),
  /**
   * The way of an allowlist's connections. `bridge`: through the API server to the runner, which makes them; nothing of a
   * credential's value enters the cluster, and heavy traffic is load for the API server. `gate`: to a pod of the session's own,
   * which makes them by the same rules; the API server carries only decisions, credentials are in that pod's memory, the
   * runner's account needs to create NetworkPolicies, and a session ends when a stream to its gate breaks.
   */
  egress: z.enum(["bridge", "gate"]).default("bridge"),
  /** Limits of a gate's pod. The scheduler reserves 64 MiB and a twentieth of a processor. */
  gate: z
    .strictObject({
      /** MiB. */
      memoryMb: megabytes.min(256).default(384),
      cpus: z.number().positive().max(1_024).default(1),
    })
    .prefault({}),
  /** Absolute paths of PEM files: authorities of servers that credentials may be sent to, besides this host's. */
  trustedAuthorities: z.array(z.string().startsWith("/", "must be an absolute path")).default([]),
  /**
   * Most pods that are prepared before a session needs them. They have the boundaries of the last runs; each serves one
   * session and is reserved its memory and processors while it waits.
   */
  prewarm: z.int().min(0).max(100).default(0),
  /** Runners with the same value remove each other's leftover pods. */
  deployment: word.default("ambit"),
  /** Minutes after which the cluster ends a pod. Must be longer than a session lives. */
  ttlMinutes: z.int().min(1).default(1_440),
  /** Minutes between two searches for pods of runners that have ended. */
  reapMinutes: z.number().positive().default(10),
  /** Milliseconds for a pod to be scheduled, its image to be pulled and its first command to answer. */
  openTimeoutMs: z.int().min(1_000).default(120_000),
  /** Milliseconds after which a deletion that the cluster hasn't confirmed is reported as such. */
  closeTimeoutMs: z.int().min(1_000).default(30_000),
  /** Time limit for one request to the API server, in milliseconds. */
  requestTimeoutMs: z.int().min(1_000).default(30_000),
  /**
   * Absolute path of a folder that shows which runners are alive. Default: `/var/lib/ambit/kubernetes` as root, else
   * `$XDG_STATE_HOME/ambit/kubernetes` or `~/.local/state/ambit/kubernetes`.
   */
  dataFolder: z.string().startsWith("/", "must be an absolute path").optional(),
  bridge: bridgeSchema
    .extend({
      folder: bridgeSchema.shape.folder.default("/ambit"),
      // An API server that restarts is away for a minute or two.
      reconnectTimeoutMs: bridgeSchema.shape.reconnectTimeoutMs.default(180_000),
      orphanTimeoutMs: bridgeSchema.shape.orphanTimeoutMs.default(300_000),
      // Nothing in a cluster keeps what a pipe carries.
      pipeBytes: bridgeSchema.shape.pipeBytes.default(1_073_741_824),
    })
    .prefault({}),
});
export type KubernetesConfig = z.output<typeof configSchema>;
