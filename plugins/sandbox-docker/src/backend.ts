import type { VerifiableBackend, Verification } from "@ambit/attacks";
import type { SandboxOverrides } from "@ambit/attacks/standard-probe";
import {
  containerGaps,
  defaultDataFolder,
  refuseBeyond,
  type SandboxOrder,
  SandboxSupply,
} from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type ActorGap,
  type Boundary,
  type Capability,
  capabilities,
  type Domain,
  domains,
  type Finding,
  type HiddenCredential,
  type Hiding,
  type Log,
  lazy,
  type Rootfs,
  type SandboxLayers,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import type { DockerConfig } from "./config.js";
import { mountsAgents, preparedBy } from "./config.js";
import { DockerLayers } from "./layers/docker-layers.js";
import { ownFirstUser } from "./open/container-options.js";
import { type EngineFacts, lacksDropping } from "./open/hiding.js";
import type { PreparedSandbox } from "./open/prepared.js";

/** The probe finds what an engine or a runtime can't enforce. */
export const claims: readonly Capability[] = capabilities;

/**
 * Why connections to ports inside might lead elsewhere. A container without a network has a loopback of its own; in a network
 * with options, such as Podman's `pasta:-T,auto`, its ports may be this host's. Pure.
 */
export function inboundGaps(
  { inbound, network: { mode } }: Boundary,
  { network }: Pick<DockerConfig, "network">,
): readonly ActorGap[] {
  if (inbound === undefined || mode !== "on" || !network.includes(":")) return [];
  return [
    {
      capability: "inbound.ports",
      reason: `sandbox-docker's network "${network}" has options, by which ports inside may be this host's`,
      fix: 'set sandboxPermission.network to "off" or an allowlist, or sandbox-docker\'s network to a name without options',
    },
  ];
}

const ownKernel = "gVisor provides its own kernel, so what is created there is inside the sandbox too";

const always = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume in a folder that only root on the engine's host can enter, and inside no program gains privileges",
};
const ofGvisor = {
  "network.deny/io-uring": ownKernel,
  "process.contained/own-user-namespace": ownKernel,
  "filesystem.workspace-only/exchange-under-the-runner":
    "gVisor's renameat2 doesn't support RENAME_EXCHANGE, so two files can't be exchanged inside",
};

/** Why an attack, by its id, breaks no promise of containers with this runtime. */
function exemptFor(runtime: string | undefined): NonNullable<Verification["exempt"]> {
  return runtime === "runsc" ? { ...always, ...ofGvisor } : always;
}

/** Sandboxes in containers of a Docker or Podman engine. */
export class DockerSandbox implements VerifiableBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly rootfs: Rootfs;
  readonly image: string;
  readonly claims = claims;
  readonly verification: Verification;
  readonly #config: DockerConfig;
  /** dockerode is loaded with the first sandbox or probe, so that a server starts without it. */
  readonly #engine = lazy(async () => (await import("./engine/engine.js")).connectTo(this.#config));
  readonly #host: () => Promise<EngineFacts>;
  readonly layers: SandboxLayers;
  readonly #layers: DockerLayers;
  readonly #volumes = lazy(async () => {
    const { LayerVolumes } = await import("./layers/layer-volumes.js");
    return new LayerVolumes(await this.#engine(), this.#config);
  });
  readonly #supply: SandboxSupply<RemoteSandbox, SandboxOverrides>;
  /** Ids of the sandboxes that a probe opens now. */
  readonly #probing = new Set<string>();
  /** From the last probe: which runtime an engine uses decides what it enforces. */
  #findings: readonly Finding[] = [];

  /** @param lookup how the boundary's proxy resolves names; default: like this host. */
  constructor(config: DockerConfig, lookup?: Lookup) {
    this.name = config.name;
    this.image = config.image;
    this.rootfs = mountsAgents(config) ? "image-with-mounts" : "image";
    this.verification = { exempt: exemptFor(config.runtime) };
    this.#config = config;
    const { deployment, ttlMinutes, reapMinutes } = config;
    const dataFolder = config.dataFolder ?? defaultDataFolder("docker");
    this.#host = lazy(async () => {
      const { factsOf } = await import("./open/start-container.js");
      return await factsOf(await this.#engine(), config, dataFolder);
    });
    const [engine, host, volumes] = [this.#engine, this.#host, this.#volumes];
    this.#layers = new DockerLayers({ config, engine, host, volumes });
    this.layers = this.#layers;
    this.#supply = new SandboxSupply({
      platform: "the engine",
      plugin: "sandbox-docker",
      deployment,
      ttlMinutes,
      reapMinutes,
      dataFolder,
      leftovers: () => this.#leftovers(),
      evictLayers: async () => (await this.#volumes()).evict(),
      prewarm: preparedBy(config),
      isPrewarmAsked: config.prewarm !== undefined,
      overrides: { lookup },
      make: (order, log, signal) => this.#prepare(order, log, signal),
    });
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    const gaps = containerGaps(boundary, { plugin: "sandbox-docker", ...this.#config });
    return [...gaps, ...inboundGaps(boundary, this.#config)];
  }

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return proxyHides(credential, boundary);
  }

  /** @param claims default: all. Tests ask for those that a change concerns. */
  async probe(signal: AbortSignal, claims: readonly Capability[] = this.claims): Promise<readonly Finding[]> {
    this.#supply.reapInBackground();
    const { probeEngine } = await import("./probe.js");
    const openNew: SandboxSupply<RemoteSandbox, SandboxOverrides>["openNew"] = async (spec, ...more) => {
      this.#probing.add(spec.id);
      try {
        return await this.#supply.openNew(spec, ...more);
      } finally {
        this.#probing.delete(spec.id);
      }
    };
    this.#findings = await probeEngine(openNew, this.#config, signal, claims);
    return this.#findings;
  }

  async dependsOn(signal: AbortSignal): Promise<readonly string[]> {
    const { identityOf } = await import("./engine/engine.js");
    return await identityOf(await this.#engine(), this.#config, signal);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const { boundary } = spec;
    const limits = { claims: this.claims, gaps: this.gaps(boundary), findings: this.#findings };
    const hides = (secret: HiddenCredential) => this.hides(secret, boundary);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, ...limits, hides }, spec);
    return await this.#supply.open(spec, scope);
  }

  async close(): Promise<void> {
    await this.#supply.close();
  }

  async #prepare(order: SandboxOrder, log: Log, signal: AbortSignal): Promise<PreparedSandbox> {
    const { PreparedSandbox } = await import("./open/prepared.js");
    const [engine, host, volumes] = [await this.#engine(), await this.#host(), await this.#volumes()];
    const { bridge } = this.#config;
    // With the same users, a probe shows that nothing else keeps two sandboxes apart than what it is about.
    const isShared = !host.hasAllUsers || this.#probing.has(order.id);
    const firstUser = isShared ? bridge.firstUser : ownFirstUser(order.layer);
    const config = { ...this.#config, bridge: { ...bridge, firstUser } };
    try {
      return await PreparedSandbox.make({ engine, config, host, volumes, ...order }, log, signal);
    } catch (error) {
      if (order.layer !== undefined) this.#layers.failed(error);
      if (host.hiding !== "drop" || !(error instanceof Error && lacksDropping(error))) throw error;
      host.hiding = "none";
      return await this.#prepare(order, log, signal);
    }
  }

  async *#leftovers() {
    const { leftoversOn } = await import("./leftovers.js");
    yield* leftoversOn(await this.#engine(), this.#config);
  }
}
