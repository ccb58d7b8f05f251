import type { Verification } from "@ambit/attacks";
import { containerGaps, defaultDataFolder, refuseBeyond, SandboxSupply, unproven } from "@ambit/backend-kit";
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
  lazy,
  type SandboxBackend,
  type SandboxSpec,
  type Scope,
  unlessAborted,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import { claims, exempt, gateGaps } from "./claims.js";
import type { KubernetesConfig } from "./config.js";
import type { ClusterAccess, PodOverrides } from "./open/pods.js";
import type { Trouble } from "./pod/cluster.js";

/** Sandboxes in pods of a Kubernetes cluster. */
export class KubernetesSandbox implements SandboxBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly rootfs = "image";
  readonly image: string;
  readonly claims = claims;
  readonly verification: Verification = { exempt };
  readonly #config: KubernetesConfig;
  /** The client is loaded with the first sandbox or probe, so that a server starts without it. */
  readonly #access: () => Promise<ClusterAccess>;
  readonly #supply: SandboxSupply<RemoteSandbox, PodOverrides>;
  #isUsed = false;
  /** From the last probe: the cluster decides what it enforces. */
  #findings: readonly Finding[] = [];

  /** @param lookup how the boundary's proxy resolves names; default: like this host. */
  constructor(config: KubernetesConfig, lookup?: Lookup) {
    this.name = config.name;
    this.image = config.image;
    this.#config = config;
    this.#access = lazy(async () => {
      const { ClusterAccess } = await import("./open/pods.js");
      this.#isUsed = true;
      return new ClusterAccess(config);
    });
    const { deployment, ttlMinutes, reapMinutes } = config;
    this.#supply = new SandboxSupply({
      platform: "the cluster",
      plugin: "sandbox-kubernetes",
      deployment,
      ttlMinutes,
      reapMinutes,
      dataFolder: config.dataFolder ?? defaultDataFolder("kubernetes"),
      leftovers: () => this.#leftovers(),
      prewarm: config.prewarm,
      isPrewarmAsked: true,
      overrides: { lookup },
      make: async (order, log, signal) => (await this.#access()).prepare(order, log, signal),
    });
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    const gaps = containerGaps(boundary, { plugin: "sandbox-kubernetes", ...this.#config });
    return this.#config.egress === "gate" ? [...gaps, ...gateGaps(boundary)] : gaps;
  }

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return proxyHides(credential, boundary);
  }

  /** @param wanted default: all claims. Tests ask for those that a change concerns. */
  async probe(signal: AbortSignal, wanted: readonly Capability[] = claims): Promise<readonly Finding[]> {
    this.#supply.reapInBackground();
    const [{ probeCluster }, { fixFor }] = await Promise.all([
      import("./probe.js"),
      import("./api/server.js"),
    ]);
    const seen: { trouble?: Trouble | undefined } = {};
    try {
      const access = await this.#access();
      const { starting } = access.cluster;
      // Before the pods are given up.
      signal.addEventListener("abort", () => Object.assign(seen, { trouble: starting.trouble }), {
        once: true,
      });
      const openNew = this.#supply.openNew.bind(this.#supply);
      // Its pods end in the background then, which takes longer than anybody waits.
      this.#findings = await unlessAborted(signal, () => probeCluster(access, openNew, signal, wanted));
    } catch (error) {
      this.#findings = wanted.map((claim) => unproven(claim, error, fixFor));
    }
    const { trouble } = seen;
    // The time was spent on it.
    if (trouble !== undefined)
      this.#findings = wanted.map((capability) => ({
        capability,
        proven: false,
        reason: trouble.reason,
        fix: trouble.fix,
      }));
    return this.#findings;
  }

  async dependsOn(signal: AbortSignal): Promise<readonly string[]> {
    return await (await this.#access()).identity(signal);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const { boundary } = spec;
    const limits = { claims, gaps: this.gaps(boundary), findings: this.#findings };
    const hides = (secret: HiddenCredential) => this.hides(secret, boundary);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, ...limits, hides }, spec);
    return await this.#supply.open(spec, scope);
  }

  async close(): Promise<void> {
    await this.#supply.close();
    if (this.#isUsed) await (await this.#access()).close();
  }

  async *#leftovers() {
    const { leftoversIn } = await import("./lifetime.js");
    yield* leftoversIn((await this.#access()).cluster, this.#config);
  }
}
