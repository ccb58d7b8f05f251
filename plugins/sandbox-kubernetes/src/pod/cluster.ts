/** What a cluster says of its pods, and what their troubles mean to a deployer. */

import { setTimeout as after } from "node:timers/promises";
import { LineSplitter, type Log, SandboxFailed } from "@ambit/core/plugin";
import type { V1Pod } from "@kubernetes/client-node";
import { z } from "zod";
import { ExecStream } from "../api/exec-stream.js";
import { Api, connectTo, isGone } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";

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

const listMetadata = z
  .object({ resourceVersion: z.string().catch(""), continue: z.string().catch("") })
  .catch({ resourceVersion: "", continue: "" });
const podListSchema = z.object({ metadata: listMetadata, items: z.array(podSchema) });
const eventListSchema = z.object({
  items: z.array(
    z.object({ type: z.string().catch(""), reason: z.string().catch(""), message: z.string().catch("") }),
  ),
});
const anything = z.unknown();
const versionSchema = z.object({ gitVersion: z.string().catch("unknown") });
const maxEvents = "50";
/** What one answer has at most, so that none grows with the namespace. */
const podsPerPage = "250";

/** The requests that this plugin makes, in one namespace. */
export class Cluster {
  readonly api: Api;
  readonly namespace: string;
  readonly starting = new StartingPods();

  constructor(config: KubernetesConfig) {
    this.api = new Api(connectTo(config), config.requestTimeoutMs);
    this.namespace = config.namespace;
  }

  /** The server's address, without credentials. */
  get address(): string {
    return this.api.server.url.host;
  }

  path(kind: string, name?: string, group = "api/v1"): string {
    return [group, "namespaces", this.namespace, kind, ...(name === undefined ? [] : [name])].join("/");
  }

  async version(signal?: AbortSignal): Promise<string> {
    return (await this.api.ask({ path: "version", signal }, versionSchema)).gitVersion;
  }

  /** @returns the pod as the server stored it. */
  async createPod(pod: V1Pod, signal?: AbortSignal): Promise<Pod> {
    return await this.api.ask({ method: "POST", path: this.path("pods"), body: pod, signal }, podSchema);
  }

  /** Undefined if there is none. */
  async pod(name: string, signal?: AbortSignal): Promise<Pod | undefined> {
    try {
      return await this.api.ask({ path: this.path("pods", name), signal }, podSchema);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /**
   * All pods, in pages of one version of the namespace.
   *
   * @throws ApiError also where the server has forgotten that version before the last page
   */
  async *pods(labelSelector: string, signal?: AbortSignal): AsyncGenerator<z.output<typeof podListSchema>> {
    let more = "";
    do {
      const query = { labelSelector, limit: podsPerPage, ...(more === "" ? {} : { continue: more }) };
      const page = await this.api.ask({ path: this.path("pods"), query, signal }, podListSchema);
      yield page;
      more = page.metadata.continue;
    } while (more !== "");
  }

  /** Asks for the end of one pod, unless the name belongs to another one by now. */
  async deletePod(name: string, uid: string, signal?: AbortSignal): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 1, preconditions: { uid } };
    try {
      await this.api.ask({ method: "DELETE", path: this.path("pods", name), body, signal }, anything);
    } catch (error) {
      if (!isGone(error) && !isOther(error)) throw error;
    }
  }

  /** Warnings about one pod, newest last. */
  async warnings(pod: string, signal?: AbortSignal): Promise<readonly { reason: string; message: string }[]> {
    const query = { fieldSelector: `involvedObject.name=${pod},type=Warning`, limit: maxEvents };
    const { items } = await this.api.ask({ path: this.path("events"), query, signal }, eventListSchema);
    return items;
  }

  exec(pod: string, container: string, argv: readonly string[], signal: AbortSignal): Promise<ExecStream> {
    return ExecStream.open(this.api.server, { namespace: this.namespace, pod, container }, argv, signal);
  }
}

/** The name belongs to a pod with another uid. */
const isOther = (error: unknown) => error instanceof Error && "status" in error && error.status === 409;

/** What keeps pods from starting, as far as the cluster has said. */
class StartingPods {
  readonly #troubles = new Map<string, Trouble>();

  /** @param trouble undefined: nothing does, or the pod runs or was given up. */
  note(pod: string, trouble: Trouble | undefined): void {
    if (trouble === undefined) this.#troubles.delete(pod);
    else this.#troubles.set(pod, trouble);
  }

  /** The first of them. */
  get trouble(): Trouble | undefined {
    return this.#troubles.values().next().value;
  }
}

/** Called with each state of a pod; undefined: it doesn't exist any more. */
type Listener = (pod: Pod | undefined) => void;

interface Watched {
  readonly uid: string;
  readonly listener: Listener;
}

const eventSchema = z.object({ type: z.string(), object: z.unknown() });
/** A pod's object has some KiB. */
const maxLineBytes = 4 * 1024 * 1024;
const maxWaitMs = 5_000;
/** Seconds after which the server ends a watch, so that a connection that is silently dead is noticed. */
const watchSeconds = 240;

/**
 * One watch for all pods of this runner: a list, then changes. When it breaks, pods are listed again, so nothing is
 * missed.
 */
export class PodWatch {
  readonly #cluster: Cluster;
  readonly #selector: string;
  readonly #pods = new Map<string, Watched>();
  #running: AbortController | undefined;

  constructor(cluster: Cluster, selector: string) {
    this.#cluster = cluster;
    this.#selector = selector;
  }

  /** Follows one pod until the returned function is called. It never keeps the process alive. */
  follow(name: string, uid: string, log: Log, listener: Listener): () => void {
    this.#pods.set(name, { uid, listener });
    if (this.#running === undefined) {
      this.#running = new AbortController();
      void this.#run(this.#running.signal, log);
    }
    return () => {
      if (this.#pods.get(name)?.listener !== listener) return;
      this.#pods.delete(name);
      if (this.#pods.size > 0) return;
      this.#running?.abort();
      this.#running = undefined;
    };
  }

  async #run(signal: AbortSignal, log: Log): Promise<void> {
    for (let wait = 100; !signal.aborted; wait = Math.min(wait * 2, maxWaitMs)) {
      try {
        const version = await this.#list(signal);
        await this.#changes(version, signal);
        wait = 100;
      } catch (error) {
        if (signal.aborted) return;
        log.debug({ error }, "the watch of pods ended, and begins again");
      }
      await after(wait, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    // One that is created after the list was asked for comes with the changes.
    const missing = new Map([...this.#pods].map(([name, { uid }]) => [name, uid]));
    let version = "";
    for await (const { items, metadata } of this.#cluster.pods(this.#selector, signal)) {
      version = metadata.resourceVersion;
      for (const pod of items) {
        const { name, uid } = pod.metadata;
        if (this.#pods.get(name)?.uid !== uid) continue;
        missing.delete(name);
        this.#tell(name, pod);
      }
    }
    for (const [name, uid] of missing) if (this.#pods.get(name)?.uid === uid) this.#tell(name, undefined);
    return version;
  }

  async #changes(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const response = await this.#cluster.api.stream({
      path: this.#cluster.path("pods"),
      query: {
        watch: "1",
        labelSelector: this.#selector,
        resourceVersion,
        timeoutSeconds: `${watchSeconds}`,
        allowWatchBookmarks: "true",
      },
      signal,
    });
    response.socket.unref();
    const lines = new LineSplitter({
      maxBytes: maxLineBytes,
      tooLong: () => new Error("an event of the API server is too long"),
    });
    for await (const chunk of response) for (const line of lines.push(chunk)) this.#changed(line);
  }

  /** @throws Error where the server wants pods to be listed again */
  #changed(line: string): void {
    const { type, object } = eventSchema.parse(JSON.parse(line));
    if (type === "ERROR") throw new Error("the API server ended the watch");
    if (type === "BOOKMARK") return;
    const pod = podSchema.parse(object);
    const { name, uid } = pod.metadata;
    if (this.#pods.get(name)?.uid === uid) this.#tell(name, type === "DELETED" ? undefined : pod);
  }

  #tell(name: string, pod: Pod | undefined): void {
    this.#pods.get(name)?.listener(pod);
  }
}
