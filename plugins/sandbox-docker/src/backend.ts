import { randomUUID } from "node:crypto";
import type { VerifiableBackend, Verification } from "@ambit/attacks";
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
  type Rootfs,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import { mountsAgents, preparedBy } from "./address.js";
import { claims } from "./claims.js";
import type { DockerConfig } from "./config.js";
import { exemptFor } from "./exempt.js";
import { inboundGaps } from "./inbound-gaps.js";
import { type EngineFacts, lacksDropping } from "./open/hiding.js";
import type { PreparedSandbox } from "./open/prepared.js";

/** Sandboxes in containers of a Docker or Podman engine. */
export class DockerSandbox implements VerifiableBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly rootfs: Rootfs;
  readonly image: string;
  readonly claims = claims;
  readonly verification: Verification;
  readonly #config: DockerConfig;
  readonly #lookup: Lookup | undefined;
  /** dockerode is loaded with the first sandbox or probe, so that a server starts without it. */
  readonly #engine = lazy(async () => (await import("./engine/engine.js")).connectTo(this.#config));
  readonly #host: () => Promise<EngineFacts>;
  readonly #reaper: Reaper;
  readonly #warm: WarmPool<Shape, PreparedSandbox>;
  #log: Log = quietLog;
  /** Whether a session has used this engine. Probes don't count. */
  #hasOpened = false;
  /** From the last probe: which runtime an engine uses decides what it enforces. */
  #findings: readonly Finding[] = [];

  /** @param lookup how the boundary's proxy resolves names; default: like this host. */
  constructor(config: DockerConfig, lookup?: Lookup) {
    this.name = config.name;
    this.image = config.image;
    this.rootfs = mountsAgents(config) ? "image-with-mounts" : "image";
    this.verification = { exempt: exemptFor(config.runtime) };
    this.#config = config;
    this.#lookup = lookup;
    const { deployment, ttlMinutes, reapMinutes } = config;
    const dataFolder = config.dataFolder ?? defaultDataFolder("docker");
    this.#host = lazy(async () => {
      const { factsOf } = await import("./open/start-container.js");
      return await factsOf(await this.#engine(), config, dataFolder);
    });
    this.#reaper = new Reaper({
      platform: "the engine",
      plugin: "sandbox-docker",
      deployment,
      ttlMinutes,
      reapMinutes,
      dataFolder,
      leftovers: () => this.#leftovers(),
    });
    this.#warm = new WarmPool({
      size: preparedBy(config),
      make: (shape, signal) => this.#prepare(`warm-${randomUUID()}`, shape, quietLog, signal),
      onFault: (error) =>
        this.#log.warn({ error }, "a sandbox couldn't be prepared, or a prepared one couldn't be used"),
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
    this.#reaper.reapInBackground(this.#log);
    const { probeEngine } = await import("./probe.js");
    this.#findings = await probeEngine((...given) => this.#open(...given), this.#config, signal, claims);
    return this.#findings;
  }

  async dependsOn(signal: AbortSignal): Promise<readonly string[]> {
    const { identityOf } = await import("./engine/identity.js");
    return await identityOf(await this.#engine(), this.#config, signal);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const { boundary, log } = spec;
    const limits = { claims: this.claims, gaps: this.gaps(boundary), findings: this.#findings };
    const hides = (secret: HiddenCredential) => this.hides(secret, boundary);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, ...limits, hides }, spec);
    this.#reaper.reapInBackground(log);
    this.#log = log;
    const shape = shapeOf(spec);
    const give = (warm: PreparedSandbox) => warm.assign(spec, { lookup: this.#lookup }, scope.signal);
    try {
      return (await this.#warm.using(shape, give, scope.signal)) ?? (await this.#open(spec, scope, {}));
    } finally {
      // By default the second session shows that more may follow: a command that runs one agent prepares nothing.
      if (this.#config.prewarm !== undefined || this.#hasOpened) this.#warm.want(shape);
      this.#hasOpened = true;
    }
  }

  async close(): Promise<void> {
    await this.#warm.close();
  }

  async #open(spec: SandboxSpec, scope: Scope, test: SandboxOverrides): Promise<RemoteSandbox> {
    const prepared = await this.#prepare(spec.id, shapeOf(spec), spec.log, scope.signal);
    return await prepared.assign(spec, { lookup: this.#lookup, ...test }, scope.signal);
  }

  async #prepare(id: string, shape: Shape, log: Log, signal: AbortSignal): Promise<PreparedSandbox> {
    const { PreparedSandbox } = await import("./open/prepared.js");
    const [engine, host] = [await this.#engine(), await this.#host()];
    try {
      return await this.#reaper.holding(id, (owner, onEnded) => {
        const options = { engine, config: this.#config, owner, shape, host, id, onEnded };
        return PreparedSandbox.make(options, log, signal);
      });
    } catch (error) {
      if (host.hiding !== "drop" || !(error instanceof Error && lacksDropping(error))) throw error;
      host.hiding = "none";
      return await this.#prepare(id, shape, log, signal);
    }
  }

  async *#leftovers() {
    const { leftoversOn } = await import("./leftovers.js");
    yield* leftoversOn(await this.#engine(), this.#config);
  }
}
