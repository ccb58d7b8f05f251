import { randomUUID } from "node:crypto";
import type { Verification } from "@ambit/attacks";
import type { SandboxOverrides } from "@ambit/attacks/standard-probe";
import {
  containerGaps,
  defaultDataFolder,
  lazy,
  quietLog,
  Reaper,
  refuseBeyond,
  type Shape,
  shapeOf,
  unproven,
  WarmPool,
} from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type ActorGap,
  type Boundary,
  type Capability,
  type Domain,
  domains,
  type Finding,
  type HiddenCredential,
  type Hiding,
  type Log,
  type SandboxBackend,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import { claims } from "./claims.js";
import type { KubernetesConfig } from "./config.js";
import { exempt } from "./exempt.js";
import type { ClusterAccess } from "./open/access.js";
import type { PreparedPod } from "./open/prepared-pod.js";

/** Sandboxes in pods of a Kubernetes cluster. */
export class KubernetesSandbox implements SandboxBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly rootfs = "image";
  readonly image: string;
  readonly claims = claims;
  readonly verification: Verification = { exempt };
  readonly #config: KubernetesConfig;
  readonly #lookup: Lookup | undefined;
  /** The client is loaded with the first sandbox or probe, so that a server starts without it. */
  readonly #access: () => Promise<ClusterAccess>;
  readonly #reaper: Reaper;
  readonly #warm: WarmPool<Shape, PreparedPod>;
  #isUsed = false;
  #log: Log = quietLog;
  /** From the last probe: the cluster decides what it enforces. */
  #findings: readonly Finding[] = [];

  /** @param lookup how the boundary's proxy resolves names; default: like this host. */
  constructor(config: KubernetesConfig, lookup?: Lookup) {
    this.name = config.name;
    this.image = config.image;
    this.#config = config;
    this.#lookup = lookup;
    this.#access = lazy(async () => {
      const { ClusterAccess } = await import("./open/access.js");
      this.#isUsed = true;
      return new ClusterAccess(config);
    });
    const { deployment, ttlMinutes, reapMinutes } = config;
    this.#reaper = new Reaper({
      platform: "the cluster",
      plugin: "sandbox-kubernetes",
      deployment,
      ttlMinutes,
      reapMinutes,
      dataFolder: config.dataFolder ?? defaultDataFolder("kubernetes"),
      leftovers: () => this.#leftovers(),
    });
    this.#warm = new WarmPool({
      size: config.prewarm,
      make: (shape, signal) => this.#prepare(`warm-${randomUUID()}`, shape, quietLog, signal),
      onFault: (error) =>
        this.#log.warn({ error }, "a pod couldn't be prepared, or a prepared one couldn't be used"),
    });
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    return containerGaps(boundary, { plugin: "sandbox-kubernetes", ...this.#config });
  }

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return proxyHides(credential, boundary);
  }

  /** @param wanted default: all claims. Tests ask for those that a change concerns. */
  async probe(signal: AbortSignal, wanted: readonly Capability[] = claims): Promise<readonly Finding[]> {
    this.#reaper.reapInBackground(this.#log);
    const [{ probeCluster }, { fixFor }] = await Promise.all([
      import("./probe.js"),
      import("./api/failure.js"),
    ]);
    try {
      this.#findings = await probeCluster(
        await this.#access(),
        (...given) => this.#open(...given),
        signal,
        wanted,
      );
    } catch (error) {
      this.#findings = wanted.map((claim) => unproven(claim, error, fixFor));
    }
    return this.#findings;
  }

  async dependsOn(signal: AbortSignal): Promise<readonly string[]> {
    return await (await this.#access()).identity(signal);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const { boundary, log } = spec;
    const limits = { claims, gaps: this.gaps(boundary), findings: this.#findings };
    const hides = (secret: HiddenCredential) => this.hides(secret, boundary);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, ...limits, hides }, spec);
    this.#reaper.reapInBackground(log);
    this.#log = log;
    const shape = shapeOf(spec);
    const give = (warm: PreparedPod) => warm.give(spec, { lookup: this.#lookup }, scope.signal);
    try {
      return (await this.#warm.using(shape, give, scope.signal)) ?? (await this.#open(spec, scope, {}));
    } finally {
      this.#warm.want(shape);
    }
  }

  async close(): Promise<void> {
    await this.#warm.close();
    if (this.#isUsed) await (await this.#access()).close();
  }

  async #open(spec: SandboxSpec, scope: Scope, test: SandboxOverrides): Promise<RemoteSandbox> {
    const prepared = await this.#prepare(spec.id, shapeOf(spec), spec.log, scope.signal);
    return await prepared.give(spec, { lookup: this.#lookup, ...test }, scope.signal);
  }

  async #prepare(id: string, shape: Shape, log: Log, signal: AbortSignal): Promise<PreparedPod> {
    const access = await this.#access();
    return await this.#reaper.holding(id, (owner, onEnded) =>
      access.prepare({ id, shape, owner, onEnded }, log, signal),
    );
  }

  async *#leftovers() {
    const { leftoversIn } = await import("./lifetime/leftovers.js");
    yield* leftoversIn((await this.#access()).cluster, this.#config);
  }
}
