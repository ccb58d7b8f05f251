/** Pods of this runner: made for a session or in advance, and then given to one. */

import { dirname } from "node:path/posix";
import type { SandboxOverrides } from "@ambit/attacks/standard-probe";
import {
  Assignment,
  type DialTarget,
  dialUntilClosed,
  type Ownership,
  type Prepared,
  quietLog,
  type SandboxOrder,
  type Shape,
} from "@ambit/backend-kit";
import {
  type FirstCommand,
  firstCommandOf,
  openRemoteSandbox,
  ownSystemOptions,
  type RemoteSandbox,
} from "@ambit/bridge";
import {
  type Evidence,
  type Log,
  lazy,
  messageOf,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";
import {
  type CredentialBroker,
  openSessionBroker,
  readAuthorities,
  trustInImage,
} from "@ambit/egress/credentials";
import { openSessionEgress, type SessionEgress } from "@ambit/egress/proxy";
import { openRemoteEgress } from "@ambit/egress/remote";
import { asSandboxFailed } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter.js";
import { ReplicaLease } from "../lifetime.js";
import { isSessionPolicy, NetworkOpen, type Policy, policiesIn } from "../network/policies.js";
import { Cluster, PodWatch } from "../pod/cluster.js";
import { enteringCommand, enteringProgramName, type LeaseReference, manifestOf } from "../pod/manifest.js";
import {
  notPrepared,
  type PodMachine,
  type StartedPod,
  type StartOptions,
  startPod,
} from "../pod/pod-machine.js";
import { SessionGate } from "./session-gate.js";

interface Held {
  readonly lease: ReplicaLease;
  readonly watch: PodWatch;
}

/** Pods of this runner in a cluster, and what its probe found out about them. */
export class ClusterAccess {
  readonly config: KubernetesConfig;
  readonly cluster: Cluster;
  /** Undefined until it is known. */
  #podShape: PodShape | undefined;
  /** Why pods have no user namespace. */
  whyBaseline: string | undefined;
  /** What a pod without a policy reaches. */
  targets: readonly DialTarget[] = [];
  #held: ((log: Log) => Promise<Held>) | undefined;

  constructor(config: KubernetesConfig) {
    this.config = config;
    this.cluster = new Cluster(config);
    if (config.hostUsers === "off") this.#useBaseline('sandbox-kubernetes\' hostUsers is "off"');
    if (config.hostUsers === "require") this.#podShape = "user-namespace";
  }

  get podShape(): PodShape {
    return this.#podShape ?? "user-namespace";
  }

  /** Lets the next pod show again what nodes can do: they may have been replaced. */
  forget(): void {
    this.targets = [];
    if (this.config.hostUsers === "auto") [this.#podShape, this.whyBaseline] = [undefined, undefined];
  }

  async policies(signal?: AbortSignal): Promise<readonly Policy[]> {
    return await policiesIn(this.cluster, signal);
  }

  /** What proofs rest on. */
  async identity(signal: AbortSignal): Promise<readonly string[]> {
    const { image, runtimeClass, namespace, nodeSelector, hostUsers, egress } = this.config;
    const [version, policies] = await Promise.all([this.cluster.version(signal), this.policies(signal)]);
    const namespacePolicies = policies
      // Those of sessions come and go, and open nothing but the way to a gate.
      .filter((policy) => !isSessionPolicy(policy))
      .map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`)
      .sort();
    return [
      JSON.stringify([
        this.cluster.address,
        version,
        namespace,
        namespacePolicies,
        image,
        runtimeClass,
        nodeSelector,
        hostUsers,
        egress,
      ]),
    ];
  }

  /** @throws SandboxFailed */
  async prepare(order: SandboxOrder, log: Log, signal: AbortSignal): Promise<PreparedPod> {
    const make = (podShape: PodShape) => this.#make(order, podShape, log, signal);
    if (this.#podShape !== undefined) return await make(this.#podShape);
    try {
      const prepared = await make("user-namespace");
      this.#podShape = "user-namespace";
      return prepared;
    } catch (error) {
      // Another failure would be the same in the other shape, or pass.
      if (!lacksUserNamespaces(error)) throw error;
      this.#useBaseline(messageOf(error));
      return await make("baseline");
    }
  }

  async close(): Promise<void> {
    const held = await this.#held?.(quietLog).catch(() => undefined);
    await held?.lease.release().catch(() => undefined);
    this.cluster.api.server.close();
  }

  #useBaseline(why: string): void {
    [this.#podShape, this.whyBaseline] = ["baseline", why];
  }

  async #make(order: SandboxOrder, podShape: PodShape, log: Log, signal: AbortSignal): Promise<PreparedPod> {
    const { cluster, config, targets } = this;
    try {
      const { lease, watch } = await this.#hold(order.owner, log);
      const options = { cluster, config, watch, podShape, lease: lease.reference, targets, ...order };
      return await PreparedPod.make(options, log, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw asSandboxFailed(error, "open a sandbox");
    }
  }

  /** All pods of a runner have one lease and one watch. */
  #hold({ deployment, replica }: Ownership, log: Log): Promise<Held> {
    this.#held ??= lazy(async (log: Log) => {
      const lease = new ReplicaLease(this.cluster, deployment, replica);
      await lease.hold(log);
      return { lease, watch: new PodWatch(this.cluster, `ambit-replica=${replica}`) };
    });
    return this.#held(log);
  }
}

/** Whether the cluster or its nodes refuse pods of the better shape, and not only this one. */
export function lacksUserNamespaces(error: unknown): boolean {
  return (
    error instanceof SandboxFailed &&
    /violates PodSecurity|user namespace|hostUsers|SYS_ADMIN|no network namespace can be made|can't be mounted with/i.test(
      error.message,
    )
  );
}

/** What a probe or a test has instead of the configuration. */
export interface PodOverrides extends SandboxOverrides {
  /** Default: the configuration's. */
  readonly egress?: KubernetesConfig["egress"] | undefined;
}

interface PreparePodOptions extends Omit<SandboxPodOptions, "onFailure" | "first"> {
  /** Its name in folders: the session's, or a separate one. */
  readonly id: string;
  /** What a pod without a policy reaches, according to the probe. */
  readonly targets: readonly DialTarget[];
  /** Called once the pod is gone, or is the reaper's. */
  onEnded(): void;
}

/** No pod shares a file system with another: each has a folder of its own mounted at the bridge's. */
const bridgeOf = ({ id, config, shape: { boundary } }: PreparePodOptions) =>
  ownSystemOptions({ id, boundary }, config.bridge);

/** A pod with a guest daemon that belongs to no session yet. It holds nothing of a session, and serves only one. */
export class PreparedPod implements Prepared {
  readonly #options: PreparePodOptions;
  readonly #assignment = new Assignment();
  #started: StartedSandboxPod | undefined;
  #sandbox: RemoteSandbox | undefined;
  #evidence: Evidence = {};
  /** How its network is closed, for the receipt. */
  #network: string | undefined;
  #broker: CredentialBroker | undefined;
  /** Without a proxy: the variables by which programs trust what was added to the image's store. */
  #trustedBy: SessionEgress["environment"] | undefined;
  #egress: SessionEgress | undefined;
  #gate: SessionGate | undefined;

  private constructor(options: PreparePodOptions) {
    this.#options = options;
  }

  /** @throws SandboxFailed */
  static async make(options: PreparePodOptions, log: Log, signal: AbortSignal): Promise<PreparedPod> {
    const prepared = new PreparedPod(options);
    const assignment = prepared.#assignment;
    const first = await firstCommandOf(bridgeOf(options));
    const onFailure = (failure: SandboxFailed) => assignment.fail(failure);
    const started = await startSandboxPod({ ...options, first, onFailure }, log, signal);
    prepared.#started = started;
    // The bridge's opening takes longer, and may fail first.
    started.evidence.catch(() => undefined);
    const sandbox = await prepared.#bridge(started, signal);
    prepared.#sandbox = sandbox;
    try {
      prepared.#evidence = await started.evidence;
      prepared.#network = await prepared.#closeNetwork(sandbox, signal);
    } catch (error) {
      await sandbox.close();
      throw asSandboxFailed(error, "close a pod's network");
    }
    return prepared;
  }

  get isUsable(): boolean {
    return this.#assignment.isUsable;
  }

  /**
   * Gives it to a session, once. Closes it if that fails.
   *
   * @throws SandboxFailed
   */
  async give(
    spec: SandboxSpec,
    { lookup, trusted, egress }: PodOverrides,
    signal: AbortSignal,
  ): Promise<RemoteSandbox> {
    const { config } = this.#options;
    const [sandbox, started] = [this.#sandbox, this.#started];
    try {
      if (sandbox === undefined || started === undefined) throw new Error("the pod has no guest daemon");
      this.#assignment.give(spec);
      const trust = { plugin: "sandbox-kubernetes", trustedAuthorities: config.trustedAuthorities, trusted };
      const broker = await openSessionBroker(spec, trust);
      this.#broker = broker;
      const authorities = await readAuthorities(config.trustedAuthorities, "sandbox-kubernetes");
      const { machine } = started;
      const access = {
        upload: machine.upload.bind(machine),
        run: async (argv: readonly string[], within: AbortSignal) => {
          const { code = null, output } = await machine.run(argv, within);
          return { code, output };
        },
      };
      const trusting = { access, folder: dirname(sandbox.workspace), broker, authorities };
      if (spec.boundary.network.mode === "allowlist") {
        const clients = { sandbox, ...trusting, spec, lookup, signal };
        this.#egress =
          (egress ?? config.egress) === "gate"
            ? await openRemoteEgress({
                ...clients,
                gate: await this.#openGate(sandbox, machine, spec.log, signal),
              })
            : await openSessionEgress(clients);
      } else if (spec.boundary.network.mode === "on") {
        this.#trustedBy = await trustInImage(trusting, signal);
      }
      return sandbox;
    } catch (error) {
      await this.close();
      throw asSandboxFailed(error, "open a sandbox");
    }
  }

  async close(): Promise<void> {
    await this.#sandbox?.close();
  }

  async #openGate(
    sandbox: RemoteSandbox,
    machine: PodMachine,
    log: Log,
    signal: AbortSignal,
  ): Promise<SessionGate> {
    const onFailure = (failure: SandboxFailed) => this.#assignment.fail(failure);
    const gate = await SessionGate.open({ ...this.#options, machine, log, onFailure }, signal);
    this.#gate = gate;
    // The way to the gate is one more policy: what else it may have opened is tried again.
    this.#network = await this.#closeNetwork(sandbox, signal);
    return gate;
  }

  /** @returns how the network is closed, for the receipt. @throws SandboxFailed while it isn't */
  async #closeNetwork(sandbox: RemoteSandbox, signal: AbortSignal): Promise<string> {
    const { shape, podShape, config, targets } = this.#options;
    if (shape.boundary.network.mode === "on") return "open";
    if (podShape === "user-namespace") return "a network namespace of its own";
    if (targets.length === 0) return "policy, not tried";
    const { bridge, settleMs } = config;
    const { open, openMs } = await dialUntilClosed(sandbox, { node: bridge.node, targets, signal }, settleMs);
    if (open.length === 0) return `policy, closed after ${openMs} ms for ${targets.length} targets`;
    throw new NetworkOpen(open, settleMs);
  }

  async #bridge(started: StartedSandboxPod, signal: AbortSignal): Promise<RemoteSandbox> {
    const { id, shape, config, onEnded } = this.#options;
    const { machine, firstPipe, unfollow } = started;
    const destroy = async () => {
      unfollow();
      const ended = await Promise.allSettled([this.#egress?.close(), this.#gate?.close(), machine.destroy()]);
      // What couldn't be deleted is the reaper's from now on.
      onEnded();
      for (const result of ended) if (result.status === "rejected") throw result.reason;
    };
    return await openRemoteSandbox(
      {
        platform: {
          firstPipe,
          openBinaryPipe: (argv, within) => machine.openBinaryPipe(argv, within),
          upload: (path, content, within) => machine.upload(path, content, within),
          destroy,
        },
        ...bridgeOf(this.#options),
        spec: this.#assignment.specOf(id, shape),
        evidence: () => ({
          ...this.#evidence,
          ...(this.#network === undefined ? {} : { "kubernetes.network": this.#network }),
          ...this.#gate?.evidence,
        }),
        imageName: config.image,
        // The loopback is the pod's own: one with the node's network, or with another container, is refused when it is read back.
        inbound: () => this.#assignment.session?.boundary.inbound ?? [],
        environment: (command) => this.#egress?.environment(command) ?? this.#trustedBy?.(command) ?? {},
        placeholders: () => this.#broker?.placeholders ?? {},
      },
      { signal, defer: () => undefined },
    );
  }
}

interface SandboxPodOptions extends Omit<StartOptions, "manifest" | "first" | "created"> {
  readonly shape: Shape;
  readonly podShape: PodShape;
  readonly owner: Ownership;
  readonly lease: LeaseReference;
  /** The bridge's, inside. */
  readonly first: FirstCommand;
}

interface StartedSandboxPod extends Omit<StartedPod, "running" | "lines"> {
  /** Once the running pod has been read back too. Rejects if it isn't what was asked for: nothing may run in it then. */
  readonly evidence: Promise<Evidence>;
}

/**
 * It says what it sees and becomes the first pipe to the guest daemon: each command takes the node some tens of milliseconds. So
 * it also waits for the pod's first process instead of being started again, for a second or more, and the shell itself reads.
 */
const firstScript = `tries=0; until [ -x "$0" ]; do [ $tries -lt 100 ] || exit ${notPrepared}; tries=$((tries + 1)); sleep 0.01; done
for file in /proc/self/uid_map /proc/sys/kernel/osrelease; do read -r line < "$file"; echo "$line"; done; exec "$@"`;
const firstLines = 2;

/** The pod of a sandbox. @throws SandboxFailed; nothing is left then */
async function startSandboxPod(
  options: SandboxPodOptions,
  log: Log,
  signal: AbortSignal,
): Promise<StartedSandboxPod> {
  const { config, shape, podShape, first } = options;
  const { bridge, searchPath } = config;
  const manifest = manifestOf(options);
  const entering = enteringCommand(bridge.folder, first.argv, searchPath);
  const argv = ["/bin/sh", "-c", firstScript, `${bridge.folder}/${enteringProgramName}`, ...entering];
  const words = { argv, count: firstLines, input: first.input };
  const { lines, running, ...started } = await startPod({ ...options, manifest, first: words }, log, signal);
  const [userMap = "", kernel = ""] = lines;
  const limits = manifest.spec?.containers[0]?.resources?.limits;
  const { memoryMb, cpus } = shape.boundary.resources;
  const evidence = running.then((pod) => ({
    "kubernetes.pod": `${config.namespace}/${pod.metadata.name}`,
    "kubernetes.node": pod.spec.nodeName ?? "unknown",
    "kubernetes.shape": podShape,
    "kubernetes.image": config.image,
    "kubernetes.kernel": kernel,
    "kubernetes.userMap": userMap.trim().replaceAll(/\s+/g, " "),
    ...(config.runtimeClass === undefined ? {} : { "kubernetes.runtimeClass": config.runtimeClass }),
    ...(memoryMb === undefined ? {} : { "kubernetes.memory": limits?.memory ?? "none" }),
    ...(cpus === undefined ? {} : { "kubernetes.cpu": limits?.cpu ?? "none" }),
  }));
  return { ...started, evidence };
}
