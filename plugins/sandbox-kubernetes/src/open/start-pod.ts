import { setTimeout as after } from "node:timers/promises";
import { isLate, type Ownership, type Shape, signalWithin } from "@ambit/backend-kit";
import { type Evidence, type Log, SandboxFailed } from "@ambit/core/plugin";
import { ApiError, asSandboxFailed } from "../api/failure.js";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter/shape.js";
import type { Cluster } from "../pod/cluster.js";
import { enteringProgramName } from "../pod/holder.js";
import { type LeaseReference, manifestOf } from "../pod/manifest.js";
import { deleted, PodMachine, uploadScript } from "../pod/pod-machine.js";
import { differencesOf } from "../pod/read-back.js";
import { failureOf, type Pod, type Trouble, troubleInEvent, troubleOf } from "../pod/status.js";
import type { PodWatch } from "../pod/watch.js";

export interface StartOptions {
  readonly cluster: Cluster;
  readonly config: KubernetesConfig;
  readonly watch: PodWatch;
  readonly shape: Shape;
  readonly podShape: PodShape;
  readonly owner: Ownership;
  readonly lease: LeaseReference;
  /** The guest daemon's. */
  readonly program: { readonly path: string; readonly content: Uint8Array };
  /** Called when the pod can't be used any more, while it opens and later. */
  onFailure(failure: SandboxFailed): void;
}

export interface StartedPod {
  readonly machine: PodMachine;
  readonly pod: Pod;
  readonly evidence: Evidence;
  /** Ends the watch over it. */
  unfollow(): void;
}

/** Milliseconds between two tries of the first command: the API says only seconds later that a container runs. */
const soonMs = 25;
const laterMs = 200;
const soonTries = 80;
/** Milliseconds after which the kubelet's events are asked for too. */
const eventsAfterMs = 2_000;
const eventsEveryMs = 2_000;

/** What the first command answers before the pod's first process has prepared everything, or if its connection broke. */
const notPrepared = 75;
/** It brings the guest daemon along: each command takes the node some tens of milliseconds. */
const firstScript = `[ -x "$1/${enteringProgramName}" ] || exit ${notPrepared}; cat /proc/self/uid_map; uname -r; shift
{ ${uploadScript}; } || exit ${notPrepared}`;

/**
 * Creates a pod, reads back what the server stored, and waits for its first command.
 *
 * @throws SandboxFailed; nothing is left then
 */
export async function startPod(options: StartOptions, log: Log, signal: AbortSignal): Promise<StartedPod> {
  const { cluster, config, watch, shape, podShape } = options;
  const manifest = manifestOf(options);
  const created = await create(cluster, manifest, signal);
  const { name, uid } = created.metadata;
  const machine = new PodMachine(cluster, config, name, uid);
  const state: { trouble: Trouble | undefined; failure: SandboxFailed | undefined } = {
    trouble: undefined,
    failure: undefined,
  };
  const unfollow = watch.follow(name, uid, log, (pod) => {
    state.trouble = pod && troubleOf(pod, config.image);
    if (pod !== undefined && (state.trouble === undefined || state.trouble.mayPass)) return;
    state.failure ??= state.trouble === undefined ? deleted() : failureOf(state.trouble);
    options.onFailure(state.failure);
  });
  try {
    refuseDifferences(manifest, created);
    const inside = await firstAnswer(options, machine, state, signal);
    const pod = await cluster.pod(name, signal);
    if (pod === undefined) throw deleted();
    // Somebody may have added a container to the running pod.
    refuseDifferences(manifest, pod);
    const evidence: Evidence = {
      "kubernetes.pod": `${config.namespace}/${name}`,
      "kubernetes.node": pod.spec.nodeName ?? "unknown",
      "kubernetes.shape": podShape,
      "kubernetes.image": config.image,
      "kubernetes.kernel": inside.kernel,
      "kubernetes.userMap": inside.userMap,
      ...(config.runtimeClass === undefined ? {} : { "kubernetes.runtimeClass": config.runtimeClass }),
      ...(shape.boundary.resources.memoryMb === undefined
        ? {}
        : { "kubernetes.memory": limitOf(manifest, "memory") }),
      ...(shape.boundary.resources.cpus === undefined ? {} : { "kubernetes.cpu": limitOf(manifest, "cpu") }),
    };
    return { machine, pod, evidence, unfollow };
  } catch (error) {
    unfollow();
    // What can't be deleted now is the reaper's.
    await machine
      .destroy()
      .catch((problem: unknown) => log.warn({ error: problem, name }, "a pod couldn't be deleted"));
    signal.throwIfAborted();
    throw asSandboxFailed(error, "start a pod");
  }
}

const limitOf = (manifest: ReturnType<typeof manifestOf>, what: "memory" | "cpu") =>
  manifest.spec?.containers[0]?.resources?.limits?.[what] ?? "none";

async function create(
  cluster: Cluster,
  manifest: ReturnType<typeof manifestOf>,
  signal: AbortSignal,
): Promise<Pod> {
  try {
    return await cluster.createPod(manifest, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw asSandboxFailed(error, "create a pod");
  }
}

function refuseDifferences(asked: ReturnType<typeof manifestOf>, stored: Pod): void {
  const [first, ...others] = differencesOf(asked, stored);
  if (first === undefined) return;
  const more =
    others.length === 0
      ? ""
      : ` (and ${others
          .map(({ field }) => field)
          .slice(0, 5)
          .join(", ")})`;
  throw new SandboxFailed(
    `The cluster changed the pod: ${first.field} is ${first.stored}, and was to be ${first.asked}${more}: exempt the namespace from the webhook or policy that changes pods`,
  );
}

interface Inside {
  readonly userMap: string;
  readonly kernel: string;
}

/** Tries the first command until it works. Events say of a node what the pod's status doesn't. */
async function firstAnswer(
  { cluster, config, program }: StartOptions,
  machine: PodMachine,
  state: { readonly trouble: Trouble | undefined; readonly failure: SandboxFailed | undefined },
  signal: AbortSignal,
): Promise<Inside> {
  const limit = signalWithin(config.openTimeoutMs, signal);
  const start = Date.now();
  let nextEvents = start + eventsAfterMs;
  let inEvents: Trouble | undefined;
  let last: unknown;
  for (let tries = 0; !limit.aborted; tries += 1) {
    if (state.failure !== undefined) throw state.failure;
    try {
      const { path, content } = program;
      const { code, output } = await machine.runAndPlace(
        ["/bin/sh", "-c", firstScript, "sh", config.bridge.folder, path, `${content.length}`],
        program,
        limit,
      );
      if (code === 0) {
        const [userMap = "", kernel = ""] = output.split("\n");
        return { userMap: userMap.trim().replaceAll(/\s+/g, " "), kernel };
      }
      if (code !== notPrepared)
        throw new SandboxFailed(`The pod's first command failed with ${code}: ${output}`);
    } catch (error) {
      if (error instanceof SandboxFailed) throw error;
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) throw error;
      last = error;
    }
    if (Date.now() > nextEvents) {
      nextEvents = Date.now() + eventsEveryMs;
      inEvents = await troubleAmongEvents(cluster, machine.name, limit);
      if (inEvents !== undefined && !inEvents.mayPass) throw failureOf(inEvents);
    }
    await after(tries < soonTries ? soonMs : laterMs, undefined, { signal: limit }).catch(() => undefined);
  }
  signal.throwIfAborted();
  const trouble = state.trouble ?? inEvents;
  if (trouble !== undefined) throw failureOf(trouble);
  const why = last instanceof Error && !isLate(last) ? `: ${last.message}` : "";
  throw new SandboxFailed(
    `The pod didn't answer within ${config.openTimeoutMs / 1_000} s${why}: see \`kubectl describe pod -n ${config.namespace}\`, or raise sandbox-kubernetes' openTimeoutMs`,
  );
}

async function troubleAmongEvents(
  cluster: Cluster,
  pod: string,
  signal: AbortSignal,
): Promise<Trouble | undefined> {
  // Without the right to list events, the pod's status has to do.
  const events = await cluster.warnings(pod, signal).catch(() => []);
  const found = events.flatMap(({ reason, message }) => troubleInEvent(reason, message) ?? []);
  return found.find(({ mayPass }) => !mayPass) ?? found.at(-1);
}
