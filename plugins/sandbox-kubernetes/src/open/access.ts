import { type DialTarget, type Ownership, quietLog, type SandboxOrder } from "@ambit/backend-kit";
import { type Log, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { asSandboxFailed } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";
import type { PodShape } from "../enter.js";
import { ReplicaLease } from "../lifetime.js";
import type { Policy } from "../network/policies.js";
import { isSessionPolicy, policiesIn } from "../network/policies.js";
import { Cluster, PodWatch } from "../pod/cluster.js";
import { PreparedPod } from "./prepared-pod.js";

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
    this.#held ??= lazyWith(async (log: Log) => {
      const lease = new ReplicaLease(this.cluster, deployment, replica);
      await lease.hold(log);
      return { lease, watch: new PodWatch(this.cluster, `ambit-replica=${replica}`) };
    });
    return this.#held(log);
  }
}

/** Made with the first log; again after a failure. */
function lazyWith<Made>(make: (log: Log) => Promise<Made>): (log: Log) => Promise<Made> {
  let made: Promise<Made> | undefined;
  return (log) => {
    made ??= make(log).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
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
