import { SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";

const stateSchema = z.object({
  waiting: z.object({ reason: z.string().catch(""), message: z.string().catch("") }).optional(),
  running: z.object({}).optional(),
  terminated: z
    .object({ reason: z.string().catch(""), exitCode: z.int().catch(-1), message: z.string().catch("") })
    .optional(),
});

const containerStatusSchema = z.object({
  name: z.string(),
  state: stateSchema.catch({}),
  restartCount: z.int().catch(0),
});

/** What is read of a pod besides its specification. */
export const podSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string().catch(""),
    labels: z.record(z.string(), z.string()).catch({}),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z.looseObject({ nodeName: z.string().optional() }),
  status: z.preprocess(
    (status) => status ?? {},
    z.looseObject({
      phase: z.string().catch("Pending"),
      reason: z.string().catch(""),
      message: z.string().catch(""),
      hostIP: z.string().optional(),
      hostIPs: z.array(z.object({ ip: z.string() })).catch([]),
      podIP: z.string().optional(),
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().catch(""),
            message: z.string().catch(""),
          }),
        )
        .catch([]),
      initContainerStatuses: z.array(containerStatusSchema).catch([]),
      containerStatuses: z.array(containerStatusSchema).catch([]),
    }),
  ),
});
export type Pod = z.output<typeof podSchema>;

/** Why a pod can't be used, or not yet. */
export interface Trouble {
  readonly reason: string;
  readonly fix: string;
  /** Whether only this session's own doings are to blame. */
  readonly concerns: "host" | "session";
  /** Whether waiting may help: a node may be added, a registry may answer. */
  readonly mayPass: boolean;
}

const trouble = (reason: string, fix: string, more: Partial<Trouble> = {}): Trouble => ({
  reason,
  fix,
  concerns: "host",
  mayPass: false,
  ...more,
});

const imageFix = (image: string) =>
  `make ${image} available to the nodes: push it to a registry that they reach, name its pull secret in sandbox-kubernetes' pullSecrets, or load it into each node and set pull to "Never"`;

/** States of a container that waits, in the kubelet's words. */
const waiting: Readonly<Record<string, (message: string, image: string) => Trouble>> = {
  ErrImageNeverPull: (_, image) =>
    trouble(`no node has the image ${image}, and none may pull it`, imageFix(image)),
  InvalidImageName: (_, image) =>
    trouble(`${image} is no name of an image`, "correct sandbox-kubernetes' image"),
  ErrImagePull: (message, image) =>
    trouble(`the image can't be pulled: ${message}`, imageFix(image), { mayPass: true }),
  ImagePullBackOff: (message, image) => trouble(`the image can't be pulled: ${message}`, imageFix(image)),
  CreateContainerConfigError: (message) =>
    trouble(
      `the container can't be configured: ${message}`,
      "compare the node's kubelet with docs/kubernetes.md",
    ),
  CreateContainerError: (message) =>
    trouble(`the container can't be created: ${message}`, "see the node's container runtime", {
      mayPass: true,
    }),
  RunContainerError: (message) =>
    trouble(
      `the container can't be started: ${message}`,
      "use an image with /bin/sh and coreutils for the nodes' machine",
    ),
};

/** What keeps the pod from working, as far as its status says. Undefined: nothing. Pure. */
export function troubleOf(pod: Pod, image: string): Trouble | undefined {
  const { metadata, status } = pod;
  const { phase, reason, message, conditions, containerStatuses, initContainerStatuses } = status;
  const byReason = endedPods[reason];
  if (phase === "Failed" && byReason !== undefined) return byReason(message);
  for (const { state } of [...initContainerStatuses, ...containerStatuses]) {
    const { terminated, waiting: waits } = state;
    if (terminated?.reason === "OOMKilled") return outOfMemory;
    const waitingTrouble = waits === undefined ? undefined : waiting[waits.reason]?.(waits.message, image);
    if (waitingTrouble !== undefined) return waitingTrouble;
  }
  const disrupted = conditions.find(({ type, status: is }) => type === "DisruptionTarget" && is === "True");
  if (disrupted !== undefined)
    return trouble(`the cluster ends the pod (${disrupted.reason}): ${disrupted.message}`, disruptionFix);
  const main = containerStatuses[0]?.state.terminated ?? failedInit(pod);
  if (phase === "Failed" || phase === "Succeeded" || main !== undefined) {
    const said =
      main === undefined
        ? ""
        : ` with exit code ${main.exitCode}${main.message === "" ? "" : `: ${main.message}`}`;
    return trouble(
      `the pod's first process ended${said}`,
      "use an image with /bin/sh and coreutils, and see `kubectl logs`; a pod also ends when its runner was silent for bridge.orphanTimeoutMs",
    );
  }
  if (metadata.deletionTimestamp !== undefined)
    return trouble("somebody deletes the pod", "leave pods with the label ambit=sandbox to Ambit");
  const unscheduled = conditions.find(({ type, status: is }) => type === "PodScheduled" && is === "False");
  if (unscheduled !== undefined)
    return trouble(
      `no node takes the pod: ${unscheduled.message}`,
      "add a node, lower sandbox-kubernetes' memoryMb and cpus, or correct nodeSelector and tolerations",
      { mayPass: true },
    );
  return undefined;
}

const failedInit = ({ status }: Pod) => {
  const ended = status.initContainerStatuses[0]?.state.terminated;
  return ended === undefined || ended.exitCode === 0 ? undefined : ended;
};

const outOfMemory = trouble(
  "the pod needed more memory than its limit",
  "raise the run's memoryMb, or sandbox-kubernetes' memoryMb",
  { concerns: "session" },
);

const disruptionFix =
  "send the run again; keep autoscalers and drains from nodes with sandboxes, or give them a priority class";

/** Of a pod that failed as a whole. */
const endedPods: Readonly<Record<string, (message: string) => Trouble>> = {
  DeadlineExceeded: () =>
    trouble("the pod reached its deadline", "raise sandbox-kubernetes' ttlMinutes", { concerns: "session" }),
  Evicted: (message) =>
    trouble(
      `the node evicted the pod: ${message}`,
      "set the run's diskMb, or give nodes more of what was short",
    ),
  NodeLost: () => trouble("the pod's node was lost", "see `kubectl get nodes`"),
  NodeShutdown: () => trouble("the pod's node shuts down", disruptionFix),
  Terminated: (message) => trouble(`the pod's node shuts down: ${message}`, disruptionFix),
  Preempting: (message) => trouble(`the pod was preempted: ${message}`, disruptionFix),
  UnexpectedAdmissionError: (message) =>
    trouble(`the node refused the pod: ${message}`, "see the node's kubelet"),
  OutOfcpu: () => trouble("the node ran out of processors", "add a node"),
  OutOfmemory: () => trouble("the node ran out of memory", "add a node"),
  OutOfpods: () => trouble("the node has its maximum of pods", "add a node"),
};

export function failureOf({ reason, fix, concerns }: Trouble): SandboxFailed {
  return new SandboxFailed(`The pod can't be used: ${reason}: ${fix}`, { concerns });
}

/** Events of the kubelet that a pod's status doesn't show. Pure. */
export function troubleInEvent(reason: string, message: string): Trouble | undefined {
  // A node in a container, such as kind's, may have them and forbid a /proc of their own.
  if (reason === "FailedCreatePodSandBox" && /user namespace|mounting "proc"/i.test(message)) {
    return {
      ...trouble(`the node has no user namespaces for pods: ${message.slice(0, 200)}`, userNamespaceFix),
    };
  }
  const failed = ["FailedCreatePodSandBox", "FailedMount", "FailedCreate", "NetworkNotReady"];
  if (!failed.includes(reason)) return undefined;
  return trouble(
    `the node can't start the pod: ${message.slice(0, 300)}`,
    "see the node's kubelet and runtime",
    {
      mayPass: true,
    },
  );
}

export const userNamespaceFix =
  "use nodes with Kubernetes 1.33, containerd 2.0, runc 1.2 and Linux 6.3 or newer";
