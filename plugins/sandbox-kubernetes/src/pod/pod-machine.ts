/** One pod: created and compared with what was asked for, used, and deleted. */

import { setTimeout as after } from "node:timers/promises";
import { isLate, signalWithin } from "@ambit/backend-kit";
import type { BinaryPipe } from "@ambit/bridge";
import { type Log, SandboxFailed, TextEnd } from "@ambit/core/plugin";
import type { V1Pod } from "@kubernetes/client-node";
import type { ExecStream } from "../api/exec-stream.js";
import { ApiError, asSandboxFailed, isGone } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";
import {
  type Cluster,
  failureOf,
  type Pod,
  type PodWatch,
  type Trouble,
  troubleInEvent,
  troubleOf,
} from "./cluster.js";
import { containerName, enteringCommand, quantityOf } from "./manifest.js";

/** What a pod's first command answers before the pod's first process has prepared everything, or if its connection broke. */
export const notPrepared = 75;
/** The exit code of a command that was killed. */
const killed = 137;

/** A command that says some lines and then takes its input: it becomes a pipe. */
interface FirstWords {
  readonly argv: readonly string[];
  readonly count: number;
  readonly input: Uint8Array;
}

export interface StartOptions {
  readonly cluster: Cluster;
  readonly config: KubernetesConfig;
  readonly watch: PodWatch;
  readonly manifest: V1Pod;
  readonly first: FirstWords;
  /** Done for the pod while it starts. Default: nothing. */
  created?(pod: Pod): Promise<void>;
  /** Called when the pod can't be used any more, while it opens and later. */
  onFailure(failure: SandboxFailed): void;
}

export interface StartedPod {
  readonly machine: PodMachine;
  /** What the first command said. */
  readonly lines: readonly string[];
  readonly firstPipe: BinaryPipe;
  /** The running pod. Rejects if it isn't what was asked for: nothing may run in it then. */
  readonly running: Promise<Pod>;
  /** Ends the watch over it. */
  unfollow(): void;
}

/**
 * Milliseconds before which no container runs: a kubelet looks for a pod's volumes every 300 ms, and without any the runtime still
 * has to make the pod.
 */
const [volumesMs, noVolumesMs] = [300, 150];
/** Milliseconds between two tries of the first command: the API says only seconds later that a container runs. */
const soonMs = 25;
const laterMs = 200;
const soonTries = 80;
/** Milliseconds after which the kubelet's events are asked for too. */
const eventsAfterMs = 2_000;
const eventsEveryMs = 2_000;

/**
 * Creates a pod, reads back what the server stored, and waits for its first command, which then becomes a pipe. The running pod
 * is read back meanwhile.
 *
 * @throws SandboxFailed; nothing is left then
 */
export async function startPod(options: StartOptions, log: Log, signal: AbortSignal): Promise<StartedPod> {
  const { cluster, config, watch, manifest } = options;
  const created = await create(cluster, manifest, signal);
  const { name, uid } = created.metadata;
  const machine = new PodMachine(cluster, config, name, uid, manifest.spec?.containers[0]?.name);
  const state: { trouble: Trouble | undefined; failure: SandboxFailed | undefined; isStarting: boolean } = {
    trouble: undefined,
    failure: undefined,
    isStarting: true,
  };
  const unfollow = watch.follow(name, uid, log, (pod) => {
    state.trouble = pod && troubleOf(pod, config.image);
    if (state.isStarting) cluster.starting.note(name, state.trouble);
    if (pod !== undefined && (state.trouble === undefined || state.trouble.mayPass)) return;
    state.failure ??= state.trouble === undefined ? deleted() : failureOf(state.trouble);
    options.onFailure(state.failure);
  });
  try {
    refuseDifferences(manifest, created);
    const more = options.created?.(created);
    // Its failure counts once the pod's own is known.
    more?.catch(() => undefined);
    const { pipe, lines } = await firstAnswer(options, machine, state, signal);
    await more;
    const readBack = async (): Promise<Pod> => {
      const pod = await cluster.pod(name, signal);
      if (pod === undefined) throw deleted();
      // Somebody may have added a container to the running pod.
      refuseDifferences(manifest, pod);
      return pod;
    };
    return { machine, lines, firstPipe: pipe, running: readBack(), unfollow };
  } catch (error) {
    unfollow();
    // What can't be deleted now is the reaper's.
    await machine
      .destroy()
      .catch((problem: unknown) => log.warn({ error: problem, name }, "a pod couldn't be deleted"));
    signal.throwIfAborted();
    throw asSandboxFailed(error, "start a pod");
  } finally {
    state.isStarting = false;
    cluster.starting.note(name, undefined);
  }
}

async function create(cluster: Cluster, manifest: V1Pod, signal: AbortSignal): Promise<Pod> {
  try {
    return await cluster.createPod(manifest, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw asSandboxFailed(error, "create a pod");
  }
}

function refuseDifferences(asked: V1Pod, stored: Pod): void {
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
  readonly lines: readonly string[];
}

/** Tries the first command until it works. Events say of a node what the pod's status doesn't. */
async function firstAnswer(
  { cluster, config, first, manifest }: StartOptions,
  machine: PodMachine,
  state: { readonly trouble: Trouble | undefined; readonly failure: SandboxFailed | undefined },
  signal: AbortSignal,
): Promise<Inside> {
  const limit = signalWithin(config.openTimeoutMs, signal);
  const start = Date.now();
  let nextEvents = start + eventsAfterMs;
  let inEvents: Trouble | undefined;
  let last: unknown;
  // A pod whose first process ends takes its commands with it, and says why a second later.
  let wasKilled = false;
  await pause(manifest.spec?.volumes === undefined ? noVolumesMs : volumesMs, limit);
  for (let tries = 0; !limit.aborted; tries += 1) {
    if (state.failure !== undefined) throw state.failure;
    try {
      const begun = await machine.begin(first.argv, first, limit);
      if ("pipe" in begun) return begun;
      if (begun.code === killed && !wasKilled) wasKilled = true;
      else if (begun.code !== notPrepared)
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
      cluster.starting.note(machine.name, state.trouble ?? inEvents);
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
  const troubles = events.flatMap(({ reason, message }) => troubleInEvent(reason, message) ?? []);
  return troubles.find(({ mayPass }) => !mayPass) ?? troubles.at(-1);
}

/** One field that the API server stored in another way than it was asked to. */
interface FieldDifference {
  /** Such as `spec.containers[sandbox].securityContext.privileged`. */
  readonly field: string;
  readonly asked: string;
  readonly stored: string;
}

type Allowed = (value: unknown) => boolean;

const anything: Allowed = () => true;
const only =
  (...values: readonly unknown[]): Allowed =>
  (value) =>
    values.includes(value);

/**
 * What a server adds by itself, by path; `*` is any one step. Whatever else appears was put there by something between
 * this runner and the node: a webhook, another client.
 */
const added: Readonly<Record<string, Allowed>> = {
  "spec.dnsPolicy": only("ClusterFirst"),
  "spec.hostUsers": only(true),
  "spec.nodeName": anything,
  "spec.nodeSelector": anything,
  "spec.preemptionPolicy": anything,
  "spec.priority": anything,
  "spec.priorityClassName": anything,
  "spec.schedulerName": anything,
  "spec.serviceAccount": only("default"),
  "spec.serviceAccountName": only("default"),
  "spec.overhead": anything,
  "spec.shareProcessNamespace": only(false),
  "spec.hostNetwork": only(false),
  "spec.hostPID": only(false),
  "spec.hostIPC": only(false),
  "spec.topologySpreadConstraints": anything,
  "spec.affinity": anything,
  "spec.resourceClaims": (value) => Array.isArray(value) && value.length === 0,
  "spec.containers.*.terminationMessagePolicy": only("File"),
  "spec.initContainers.*.terminationMessagePolicy": only("File"),
  "spec.containers.*.securityContext.privileged": only(false),
  "spec.initContainers.*.securityContext.privileged": only(false),
  "spec.containers.*.securityContext.procMount": only("Default"),
  "spec.initContainers.*.securityContext.procMount": only("Default"),
  "spec.containers.*.volumeMounts.*.recursiveReadOnly": anything,
  "spec.volumes.*.downwardAPI.defaultMode": anything,
  "spec.volumes.*.downwardAPI.items.*.fieldRef.apiVersion": only("v1"),
};

/**
 * Annotations by which a pod gets further networks (Multus), devices (CDI), or other settings of its runtime. Clusters add many
 * others to every pod, such as its address.
 */
const obeyedAnnotation =
  /^(k8s\.v1\.cni\.cncf\.io\/networks|v1\.multus-cni\.io\/default-network|(container\.apparmor|seccomp)\.security\.(alpha|beta)\.kubernetes\.io\/.*|cdi\.k8s\.io\/.*|io\.(katacontainers|kubernetes\.cri-o|containerd)\..*|dev\.gvisor\..*)$/;

/** A node's pressure, which the server tolerates for every pod of its class; they keep no pod from being ended. */
const addedTolerations = ["node.kubernetes.io/memory-pressure"];

/** Where elements of lists have names, and no order of their own. */
const keys: Readonly<Record<string, string>> = {
  "spec.containers": "name",
  "spec.initContainers": "name",
  "spec.volumes": "name",
  "spec.containers.*.volumeMounts": "mountPath",
  "spec.initContainers.*.volumeMounts": "mountPath",
  "spec.containers.*.env": "name",
  "spec.tolerations": "key",
};

/**
 * Compares a pod as the server stored it with the one that was asked for. Pure.
 *
 * @returns every field that differs or was added, except a server's own defaults.
 */
export function differencesOf(asked: V1Pod, stored: unknown): readonly FieldDifference[] {
  const differences: FieldDifference[] = [];
  for (const kind of ["labels", "annotations"] as const) {
    const storedEntries = fieldOf(fieldOf(stored, "metadata"), kind);
    for (const [name, value] of Object.entries(asked.metadata?.[kind] ?? {})) {
      if (fieldOf(storedEntries, name) !== value)
        differences.push(difference(`metadata.${kind}.${name}`, value, fieldOf(storedEntries, name)));
    }
  }
  const annotations = fieldOf(fieldOf(stored, "metadata"), "annotations");
  for (const name of isObject(annotations) ? Object.keys(annotations) : []) {
    if (obeyedAnnotation.test(name) && asked.metadata?.annotations?.[name] === undefined)
      differences.push(difference(`metadata.annotations.${name}`, undefined, fieldOf(annotations, name)));
  }
  // With it, the cluster deletes the pod of a runner that lives no more.
  const owners = "metadata.ownerReferences";
  compare(
    owners,
    owners,
    asked.metadata?.ownerReferences,
    fieldOf(fieldOf(stored, "metadata"), "ownerReferences"),
    differences,
  );
  compare("spec", "spec", asked.spec, fieldOf(stored, "spec"), differences);
  return differences;
}

/** @param path with `*` for names of elements; @param name as a reader sees it. */
function compare(
  path: string,
  name: string,
  asked: unknown,
  stored: unknown,
  differences: FieldDifference[],
): void {
  const key = keys[path];
  const isNoList = asked === undefined && key !== undefined && Array.isArray(stored);
  if (asked === undefined && !isNoList) {
    if (stored !== undefined && added[path]?.(stored) !== true)
      differences.push(difference(name, asked, stored));
    return;
  }
  if (key !== undefined && (Array.isArray(asked) || isNoList)) {
    const ourEntries = byKey(Array.isArray(asked) ? asked : [], key);
    const storedEntries = byKey(Array.isArray(stored) ? stored : [], key);
    for (const entryName of new Set([...ourEntries.keys(), ...storedEntries.keys()])) {
      if (path === "spec.tolerations" && !ourEntries.has(entryName) && addedTolerations.includes(entryName))
        continue;
      compare(
        `${path}.*`,
        `${name}[${entryName}]`,
        ourEntries.get(entryName),
        storedEntries.get(entryName),
        differences,
      );
    }
    return;
  }
  if (Array.isArray(asked)) {
    if (Array.isArray(stored) && asked.length === stored.length) {
      for (const [index, element] of asked.entries())
        compare(`${path}.*`, `${name}[${index}]`, element, stored[index], differences);
    } else differences.push(difference(name, asked, stored));
    return;
  }
  if (isObject(asked)) {
    const ourFields = Object.entries(asked).filter(([, value]) => value !== undefined);
    if (!isObject(stored)) {
      // The server leaves out what is empty.
      if (ourFields.length > 0 || stored !== undefined) differences.push(difference(name, asked, stored));
      return;
    }
    for (const field of new Set([...ourFields.map(([fieldName]) => fieldName), ...Object.keys(stored)]))
      compare(
        `${path}.${field}`,
        `${name}.${field}`,
        fieldOf(asked, field),
        fieldOf(stored, field),
        differences,
      );
    return;
  }
  if (asked === stored || isSameQuantity(asked, stored)) return;
  // The server leaves out empty texts.
  if (asked === "" && stored === undefined) return;
  differences.push(difference(name, asked, stored));
}

function byKey(list: readonly unknown[], key: string): ReadonlyMap<string, unknown> {
  const named = new Map<string, unknown>();
  for (const entry of list) {
    const name = String(fieldOf(entry, key));
    // Two of one name: the second isn't ours.
    named.set(named.has(name) ? `${name} again` : name, entry);
  }
  return named;
}

/** `1000m` comes back as `1`. */
function isSameQuantity(asked: unknown, stored: unknown): boolean {
  if (typeof asked !== "string" || typeof stored !== "string") return false;
  const [askedAmount, storedAmount] = [quantityOf(asked), quantityOf(stored)];
  return (
    askedAmount !== undefined && storedAmount !== undefined && Math.abs(askedAmount - storedAmount) < 1e-9
  );
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? new Map<string, unknown>(Object.entries(value)).get(name) : undefined;
}

const maxWords = 120;
const wordsOf = (value: unknown) =>
  value === undefined ? "nothing" : JSON.stringify(value).slice(0, maxWords);

function difference(field: string, asked: unknown, stored: unknown): FieldDifference {
  return { field, asked: wordsOf(asked), stored: wordsOf(stored) };
}

/** Writes a whole file or none, also if the connection breaks in between. */
const uploadScript = `umask 022; d=\${1%/*}; mkdir -p "$d" && head -c "$2" > "$1.part" &&
[ "$(wc -c < "$1.part")" -eq "$2" ] && chmod a+r "$1.part" && mv "$1.part" "$1"`;

const maxOutputCharacters = 4_000;
/** Milliseconds between two looks whether a deleted pod is gone. */
const lookAgainMs = 100;
const uploadTries = 3;

interface Ended {
  readonly code: number | undefined;
  readonly output: string;
}

/** A command that runs, after the lines that it began with. */
interface Begun {
  readonly lines: readonly string[];
  readonly pipe: BinaryPipe;
}

/** A pod, as the bridge needs it. */
export class PodMachine {
  readonly #cluster: Cluster;
  readonly #config: KubernetesConfig;
  #destroyed: Promise<void> | undefined;
  #hasPipe = false;

  constructor(
    cluster: Cluster,
    config: KubernetesConfig,
    readonly name: string,
    readonly uid: string,
    readonly container = containerName,
  ) {
    this.#cluster = cluster;
    this.#config = config;
  }

  async openBinaryPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<BinaryPipe> {
    const { bridge, searchPath } = this.#config;
    // The server accepts a connection to a container that has ended, and only then says that there is none.
    const lost = this.#hasPipe ? await this.whyLost(signal) : undefined;
    if (lost !== undefined) throw lost;
    this.#hasPipe = true;
    return pipeOf(await this.#exec(enteringCommand(bridge.folder, argv, searchPath), signal));
  }

  /**
   * Starts a command that says this many lines and then reads. It is given its input after them, so that a failed try costs
   * nothing.
   *
   * @returns how it ended, if it did before
   */
  async begin(
    argv: readonly string[],
    { count, input }: { readonly count: number; readonly input: Uint8Array },
    signal: AbortSignal,
  ): Promise<Begun | Ended> {
    const limit = signalWithin(this.#config.requestTimeoutMs, signal);
    const stream = await this.#exec(argv, limit);
    const stop = () => stream.close();
    limit.addEventListener("abort", stop, { once: true });
    let isPipe = false;
    try {
      const reader = stream.output.getReader();
      let said = "";
      while (said.split("\n").length <= count) {
        const { done, value } = await reader.read();
        if (done) return await this.#endOf(stream, said);
        said += Buffer.from(value).toString("latin1");
        if (said.length > maxOutputCharacters) throw new Error("the command says something else");
      }
      reader.releaseLock();
      [isPipe, this.#hasPipe] = [true, true];
      // Whether it arrives shows in what the command answers.
      stream.write(input).catch(() => undefined);
      return { lines: said.split("\n"), pipe: pipeOf(stream) };
    } catch (error) {
      limit.throwIfAborted();
      throw error;
    } finally {
      limit.removeEventListener("abort", stop);
      if (!isPipe) stream.close();
    }
  }

  /** Runs one of the plugin's own commands to its end, as root and outside the sandbox's own network. */
  async run(argv: readonly string[], signal: AbortSignal, input?: Uint8Array): Promise<Ended> {
    const limit = signalWithin(this.#config.requestTimeoutMs, signal);
    const stream = await this.#exec(argv, limit);
    const stop = () => stream.close();
    limit.addEventListener("abort", stop, { once: true });
    try {
      // A command that ends early doesn't read the rest: its exit code says why.
      if (input !== undefined) stream.write(input).catch(() => undefined);
      const output = new TextEnd(maxOutputCharacters);
      for await (const bytes of stream.output) output.push(bytes);
      return await this.#endOf(stream, output.text);
    } catch (error) {
      limit.throwIfAborted();
      throw error;
    } finally {
      limit.removeEventListener("abort", stop);
      stream.close();
    }
  }

  async #endOf(stream: ExecStream, output: string): Promise<Ended> {
    const { code, reason, message } = await stream.end;
    if (code === undefined) throw new ApiError(500, reason, message);
    return { code, output: `${output}\n${stream.errors}`.trim() };
  }

  async upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    const argv = ["/bin/sh", "-c", uploadScript, "sh", path, `${content.length}`];
    for (let tries = 1; ; tries += 1) {
      try {
        const { code, output } = await this.run(argv, signal, content);
        if (code === 0) return;
        throw new SandboxFailed(`${path} couldn't be written in the pod: ${output}`, { concerns: "session" });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SandboxFailed || tries === uploadTries)
          throw asSandboxFailed(error, `write ${path} in the pod ${this.name}`);
        await after(lookAgainMs, undefined, { signal });
      }
    }
  }

  async #exec(argv: readonly string[], signal: AbortSignal): Promise<ExecStream> {
    try {
      return await this.#cluster.exec(this.name, this.container, argv, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw (await this.whyLost(signal).catch(() => undefined)) ?? error;
    }
  }

  /** Why nothing runs in it any more; undefined while it may still run. */
  async whyLost(signal: AbortSignal): Promise<SandboxFailed | undefined> {
    const pod = await this.#cluster.pod(this.name, signal);
    if (pod === undefined || pod.metadata.uid !== this.uid) return deleted();
    const trouble = troubleOf(pod, this.#config.image);
    return trouble === undefined || trouble.mayPass ? undefined : failureOf(trouble);
  }

  /** Settles when the cluster has no such pod any more. @throws SandboxFailed when that isn't confirmed in time */
  destroy(): Promise<void> {
    this.#destroyed ??= deleteAndConfirm(this.#cluster, this.#config, this);
    return this.#destroyed;
  }
}

const pipeOf = (stream: ExecStream): BinaryPipe => ({
  output: stream.output,
  write: (bytes) => stream.write(bytes),
  close: async () => stream.close(),
});

export const deleted = () =>
  new SandboxFailed("The pod was deleted: leave pods with the label ambit=sandbox to Ambit", {
    concerns: "session",
  });

/** The kubelet removes the object only when its containers have ended. */
export async function deleteAndConfirm(
  cluster: Cluster,
  { closeTimeoutMs }: Pick<KubernetesConfig, "closeTimeoutMs">,
  { name, uid }: { readonly name: string; readonly uid: string },
): Promise<void> {
  const until = Date.now() + closeTimeoutMs;
  let [isAsked, why] = [false, "its node may be away: see `kubectl get nodes`"];
  while (Date.now() < until) {
    try {
      if (!isAsked) await cluster.deletePod(name, uid);
      isAsked = true;
      const left = await cluster.pod(name);
      if (left === undefined || left.metadata.uid !== uid) return;
    } catch (error) {
      if (isGone(error)) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429)
        throw asSandboxFailed(error, `delete the pod ${name}`);
      why = error instanceof Error ? error.message : String(error);
    }
    await after(lookAgainMs);
  }
  throw new SandboxFailed(
    `The end of the pod ${name} isn't confirmed after ${closeTimeoutMs} ms, and its processes may still run: ${why}. It ends by itself when its runner is silent, and at its deadline`,
  );
}
