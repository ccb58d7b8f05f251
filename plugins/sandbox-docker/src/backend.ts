import { defaultDataFolder, lazy, Reaper, refuseBeyond } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type ActorGap,
  type Boundary,
  type Domain,
  domains,
  type Finding,
  type SandboxBackend,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress/proxy";
import { claims, limitsOf } from "./claims.js";
import type { DockerConfig } from "./config.js";
import type { EngineFacts } from "./open/open.js";

/** Sandboxes in containers of a Docker or Podman engine. */
export class DockerSandbox implements SandboxBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly rootfs = "image";
  readonly claims = claims;
  readonly #config: DockerConfig;
  readonly #lookup: Lookup | undefined;
  /** dockerode comes with the first sandbox or probe: a server's start does without. */
  readonly #engine = lazy(async () => (await import("./engine/engine.js")).connectTo(this.#config));
  readonly #host: EngineFacts = { hiding: "exec" };
  readonly #reaper: Reaper;

  /** @param lookup how the boundary's proxy resolves names; default: as this host does. */
  constructor(config: DockerConfig, lookup?: Lookup) {
    this.name = config.name;
    this.#config = config;
    this.#lookup = lookup;
    const { deployment, ttlMinutes, reapMinutes } = config;
    this.#reaper = new Reaper({
      ...{ platform: "the engine", plugin: "sandbox-docker", deployment, ttlMinutes, reapMinutes },
      dataFolder: config.dataFolder ?? defaultDataFolder("docker"),
      leftovers: () => this.#leftovers(),
    });
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    return limitsOf(boundary, this.#config);
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeEngine } = await import("./probe/probe.js");
    return probeEngine((spec: SandboxSpec, scope: Scope) => this.#open(spec, scope), this.#config, signal);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const gaps = this.gaps(spec.boundary);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, claims: this.claims, gaps }, spec);
    // Beside it: a sandbox can wait for nothing that others left.
    void this.#reaper
      .keepReaping(spec.log)
      .catch((error: unknown) => spec.log.warn({ error }, "what dead runners left couldn't be found"));
    return this.#open(spec, scope);
  }

  async #open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const { openSandbox } = await import("./open/open.js");
    const [engine, owner] = [await this.#engine(), await this.#reaper.begin(spec.id)];
    const onGone = () => this.#reaper.end(spec.id);
    return openSandbox(
      { engine, config: this.#config, owner, host: this.#host, lookup: this.#lookup, onGone },
      spec,
      scope,
    );
  }

  async *#leftovers() {
    const { leftoversOn } = await import("./leftovers.js");
    yield* leftoversOn(await this.#engine(), this.#config);
  }
}
