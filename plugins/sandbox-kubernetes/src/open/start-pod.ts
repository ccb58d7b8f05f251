import { setTimeout as after } from "node:timers/promises";
import { isLate, type Ownership, type Shape, signalWithin } from "@ambit/backend-kit";
import type { BinaryPipe, FirstCommand } from "@ambit/bridge";
import { type Evidence, type Log, SandboxFailed } from "@ambit/core/plugin";
import { ApiError, asSandboxFailed } from "../api/failure.js";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter/shape.js";
import type { Cluster } from "../pod/cluster.js";
import { enteringCommand, enteringProgramName } from "../pod/holder.js";
import { type LeaseReference, manifestOf } from "../pod/manifest.js";
import { deleted, PodMachine } from "../pod/pod-machine.js";
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
  /** The bridge's, inside. */
  readonly first: FirstCommand;
  /** Called when the pod can't be used any more, while it opens and later. */
  onFailure(failure: SandboxFailed): void;
}

export interface StartedPod {
  readonly machine: PodMachine;
  readonly firstPipe: BinaryPipe;
  /** Once the running pod has been read back too. Rejects if it isn't what was asked for: nothing may run in it then. */
  readonly evidence: Promise<Evidence>;
  /** Ends the watch over it. */
  unfollow(): void;
}

/** Milliseconds that the kubelet lets pass until it looks for a pod's volumes again: before, its containers can't run. */
const volumesMs = 300;
/** Milliseconds between two tries of the first command: the API says only seconds later that a container runs. */
const soonMs = 25;
const laterMs = 200;
const soonTries = 80;
/** Milliseconds after which the kubelet's events are asked for too. */
const eventsAfterMs = 2_000;
const eventsEveryMs = 2_000;

/** What the first command answers before the pod's first process has prepared everything, or if its connection broke. */
const notPrepared = 75;
/**
 * It says what it sees and becomes the first pipe to the guest daemon: each command takes the node some tens of milliseconds. The
 * shell itself reads, for the same reason.
 */
const firstScript = `[ -x "$0" ] || exit ${notPrepared}
for file in /proc/self/uid_map /proc/sys/kernel/osrelease; do read -r line < "$file"; echo "$line"; done; exec "$@"`;
const firstLines = 2;

/**
 * Creates a pod, reads back what the server stored, and waits for its first command, which then becomes a pipe. The running pod
 * is read back meanwhile.
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
    const { pipe, userMap, kernel } = await firstAnswer(options, machine, state, signal);
    const readBack = async (): Promise<Evidence> => {
      const pod = await cluster.pod(name, signal);
      if (pod === undefined) throw deleted();
      // Somebody may have added a container to the running pod.
      refuseDifferences(manifest, pod);
      return {
        "kubernetes.pod": `${config.namespace}/${name}`,
        "kubernetes.node": pod.spec.nodeName ?? "unknown",
        "kubernetes.shape": podShape,
        "kubernetes.image": config.image,
        "kubernetes.kernel": kernel,
        "kubernetes.userMap": userMap,
        ...(config.runtimeClass === undefined ? {} : { "kubernetes.runtimeClass": config.runtimeClass }),
        ...(shape.boundary.resources.memoryMb === undefined
          ? {}
          : { "kubernetes.memory": limitOf(manifest, "memory") }),
        ...(shape.boundary.resources.cpus === undefined
          ? {}
          : { "kubernetes.cpu": limitOf(manifest, "cpu") }),
      };
    };
    return { machine, firstPipe: pipe, evidence: readBack(), unfollow };
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
  readonly pipe: BinaryPipe;
  readonly userMap: string;
  readonly kernel: string;
}

/** Tries the first command until it works. Events say of a node what the pod's status doesn't. */
async function firstAnswer(
  { cluster, config, first }: StartOptions,
  machine: PodMachine,
  state: { readonly trouble: Trouble | undefined; readonly failure: SandboxFailed | undefined },
  signal: AbortSignal,
): Promise<Inside> {
  const { bridge, searchPath } = config;
  const entering = enteringCommand(bridge.folder, first.argv, searchPath);
  const argv = ["/bin/sh", "-c", firstScript, `${bridge.folder}/${enteringProgramName}`, ...entering];
  const limit = signalWithin(config.openTimeoutMs, signal);
  const start = Date.now();
  let nextEvents = start + eventsAfterMs;
  let inEvents: Trouble | undefined;
  let last: unknown;
  await pause(volumesMs, limit);
  for (let tries = 0; !limit.aborted; tries += 1) {
    if (state.failure !== undefined) throw state.failure;
    try {
      const begun = await machine.begin(argv, { count: firstLines, input: first.input }, limit);
      if ("pipe" in begun) {
        const [userMap = "", kernel = ""] = begun.lines;
        return { pipe: begun.pipe, userMap: userMap.trim().replaceAll(/\s+/g, " "), kernel };
      }
      if (begun.code !== notPrepared)
        throw new SandboxFailed(`The pod's first command failed with ${begun.code}: ${begun.output}`);
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
    await pause(tries < soonTries ? soonMs : laterMs, limit);
  }
  signal.throwIfAborted();
  const trouble = state.trouble ?? inEvents;
  if (trouble !== undefined) throw failureOf(trouble);
  const why = last instanceof Error && !isLate(last) ? `: ${last.message}` : "";
  throw new SandboxFailed(
    `The pod didn't answer within ${config.openTimeoutMs / 1_000} s${why}: see \`kubectl describe pod -n ${config.namespace}\`, or raise sandbox-kubernetes' openTimeoutMs`,
  );
}

const pause = (ms: number, signal: AbortSignal) => after(ms, undefined, { signal }).catch(() => undefined);

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
