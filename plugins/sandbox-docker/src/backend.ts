import { defaultDataFolder, lazy, Reaper, refuseBeyond } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type ActorGap,
  type Boundary,
  type Domain,
  domains,
  type Finding,
  type HiddenCredential,
  type Hiding,
  type SandboxBackend,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import { claims, limitsOf } from "./claims.js";
import type { DockerConfig } from "./config.js";
import type { EngineFacts, TestOptions } from "./open/open.js";

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
  /** Of the last probe: the runtimes of engines differ in what they enforce. */
  #findings: readonly Finding[] = [];

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

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return proxyHides(credential, boundary);
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeEngine } = await import("./probe.js");
    this.#findings = await probeEngine(
      (spec: SandboxSpec, scope: Scope, options: TestOptions) => this.#open(spec, scope, options),
      this.#config,
      signal,
    );
    return this.#findings;
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
    const disproved = this.#findings.find((one) => !one.proven && spec.required.includes(one.capability));
    if (disproved !== undefined) {
      throw new SandboxFailed(
        `The engine of the sandbox ${this.name} doesn't enforce ${disproved.capability}`,
      );
    }
    const gaps = this.gaps(spec.boundary);
    const exposed = spec.secrets?.find((secret) => this.hides(secret, spec.boundary) !== true);
    if (exposed !== undefined) throw new SandboxFailed(`${exposed.name} can't be kept outside the sandbox`);
    refuseBeyond({ sandbox: `The sandbox ${this.name}`, claims: this.claims, gaps }, spec);
    // Beside it: a sandbox can wait for nothing that others left.
    void this.#reaper
      .keepReaping(spec.log)
      .catch((error: unknown) => spec.log.warn({ error }, "what dead runners left couldn't be found"));
    return this.#open(spec, scope);
  }

  async #open(spec: SandboxSpec, scope: Scope, options?: TestOptions): Promise<RemoteSandbox> {
    const { openSandbox } = await import("./open/open.js");
    const [engine, owner] = [await this.#engine(), await this.#reaper.begin(spec.id)];
    const onGone = () => this.#reaper.end(spec.id);
    const given = { engine, config: this.#config, owner, host: this.#host, lookup: this.#lookup, onGone };
    try {
      return await openSandbox({ ...given, ...options }, spec, scope);
    } catch (error) {
      onGone();
      throw error;
    }
  }

  async *#leftovers() {
    const { leftoversOn } = await import("./leftovers.js");
    yield* leftoversOn(await this.#engine(), this.#config);
  }
}
