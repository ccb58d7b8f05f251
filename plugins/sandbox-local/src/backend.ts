import { join } from "node:path";
import type { VerifiableBackend, Verification } from "@ambit/attacks";
import { defaultDataFolder, refuseBeyond } from "@ambit/backend-kit";
import {
  type ActorGap,
  type Boundary,
  type Capability,
  type Domain,
  domains,
  type Finding,
  type HiddenCredential,
  type Hiding,
  isRestricted,
  type LocalConnection,
  lazy,
  type Readability,
  type RequiredPath,
  type Sandbox,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { proxyHides } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import { claims, limitsOf } from "./claims.js";
import type { LocalConfig } from "./config.js";
import { readabilityOf } from "./confined/files/required-paths.js";
import type { JailSetup } from "./confined/jail-setup.js";
import type { ConfinedSandbox, SessionOverrides } from "./confined/session.js";
import type { RunnerFolder } from "./folders/data-folder.js";
import type { ConnectionOwners } from "./process/connection-owner.js";

/** Sandboxes on the runner's own host: confined by bubblewrap, or not at all. */
export class LocalSandbox implements VerifiableBackend {
  readonly name = "local";
  readonly site = "sandbox";
  readonly opensFolders = true;
  readonly claims: readonly Capability[] = claims;
  readonly #config: LocalConfig;
  readonly #dataFolder: string;
  readonly #lookup: Lookup | undefined;
  /** The first use cleans up after dead runners and creates a folder for this one. */
  readonly #runner: () => Promise<RunnerFolder>;
  #claimed: RunnerFolder | undefined;
  #jailSetup: (() => Promise<JailSetup>) | undefined;
  #owners: ConnectionOwners | undefined;
  /** Required paths that a session's own user can read, until the next probe. */
  readonly #readable = new Set<string>();
  /** Whether the last jail came up. */
  #confines = false;

  /** @param lookup how the boundary's proxy resolves names; default: like this host. */
  constructor(config: LocalConfig, lookup?: Lookup) {
    this.#config = config;
    this.#dataFolder = config.dataFolder ?? defaultDataFolder();
    this.#lookup = lookup;
    this.#runner = lazy(async () => {
      const { openRunner } = await import("./folders/data-folder.js");
      this.#claimed = await openRunner(this.#dataFolder, config.takeoverMinutes * 60_000);
      return this.#claimed;
    });
  }

  get verification(): Verification {
    const runnerModule = new URL("../dist/runner-module.js", import.meta.url);
    runnerModule.searchParams.set("config", JSON.stringify(this.#config));
    return { runnerModule };
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    return limitsOf(boundary);
  }

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return proxyHides(credential, boundary);
  }

  /** @param wanted the other claims may stay unproven. Default: all. */
  async probe(signal: AbortSignal, wanted: readonly Capability[] = claims): Promise<readonly Finding[]> {
    this.#readable.clear();
    const { probeConfinement, trialsOf } = await import("./probe/probe.js");
    const open = (spec: SandboxSpec, options?: SessionOverrides) => this.#openConfined(spec, options);
    const trials = trialsOf(this.#config, this.#dataFolder);
    const chosen = trials.filter(({ shows }) => shows.some((capability) => wanted.includes(capability)));
    return probeConfinement(open, signal, chosen, this.#config.readOnlyMounts);
  }

  reads(paths: readonly RequiredPath[]): Readability {
    if (process.getuid?.() !== 0) return true;
    const readability = readabilityOf(paths.filter(({ path }) => !this.#readable.has(path)));
    if (readability === true) for (const { path } of paths) this.#readable.add(path);
    return readability;
  }

  async dependsOn(): Promise<readonly string[]> {
    const { programIdentities } = await import("./confined/jail-setup.js");
    return await programIdentities();
  }

  async madeConnection(connection: LocalConnection): Promise<boolean> {
    if (process.platform !== "linux") return false;
    const { ConnectionOwners } = await import("./process/connection-owner.js");
    const { first, count } = this.#config.userIds;
    const isRoot = process.getuid?.() === 0;
    this.#owners ??= new ConnectionOwners((uid) => isRoot && uid >= first && uid < first + count);
    return this.#owners.isOfRun(connection);
  }

  async open(spec: SandboxSpec, _scope: Scope): Promise<Sandbox> {
    const sandbox = this.#mustConfine(spec)
      ? await this.#openConfined(spec)
      : await this.#openWithoutBoundary(spec);
    // What the first use found of dead runners. That may have been a probe, whose log is discarded.
    (await this.#runner()).trash.report(spec.log);
    return sandbox;
  }

  async discardRemains(remains: string): Promise<void> {
    const { readRemains } = await import("./confined/session.js");
    const { deadRunner } = await import("./folders/data-folder.js");
    const { runner, session } = readRemains(remains);
    await (await this.#runner()).trash.discard(join(await deadRunner(this.#dataFolder, runner), session));
  }

  /** Nothing removes the files of its last sessions once this process has ended. */
  async close(): Promise<void> {
    await this.#claimed?.trash.close();
  }

  /** Whether this spec, or the configuration, lets the sandbox open only confined. */
  #mustConfine({ remains, workspaceFolder, boundary, required, secrets }: SandboxSpec): boolean {
    return (
      this.#config.unconfined === "refuse" ||
      remains !== undefined ||
      workspaceFolder !== undefined ||
      isRestricted(boundary) ||
      required.length > 0 ||
      secrets !== undefined
    );
  }

  async #openWithoutBoundary(spec: SandboxSpec): Promise<Sandbox> {
    if (this.#config.unconfined === "prefer") return this.#openUnconfined(spec);
    try {
      return await this.#openConfined(spec);
    } catch (error) {
      if (!(error instanceof SandboxFailed)) throw error;
      spec.log.warn(
        { sandbox: spec.id, reason: error.message },
        "this run has no boundary and isn't confined",
      );
      return this.#openUnconfined(spec);
    }
  }

  async #openConfined(
    spec: SandboxSpec,
    { lookup = this.#lookup, ...options }: SessionOverrides = {},
  ): Promise<ConfinedSandbox> {
    const hides = (secret: HiddenCredential) => this.hides(secret, spec.boundary);
    refuseBeyond({ sandbox: "The local sandbox", claims, gaps: limitsOf(spec.boundary), hides }, spec);
    // The modules of a jail, loaded with the first sandbox or probe, so that a server starts without them.
    const { openConfined } = await import("./confined/session.js");
    const { checkHost, makeJailSetup } = await import("./confined/jail-setup.js");
    checkHost();
    const runner = await this.#runner();
    this.#jailSetup ??= lazy(() => makeJailSetup(runner.path, this.#config.trustedAuthorities));
    const jailSetup = await this.#jailSetup();
    const dataFolder = this.#dataFolder;
    // Without a boundary, the run goes on unconfined if this fails. A jail that fails later fails the run.
    const isTried = !this.#confines;
    const onLaunch = (failure?: unknown) => {
      if (failure === undefined) this.#confines = true;
      else if (failure instanceof SandboxFailed && failure.concerns === "host") this.#confines = false;
    };
    const reads = (paths: readonly RequiredPath[]) => this.reads(paths);
    const host = { config: this.#config, dataFolder, runner, jailSetup, lookup, reads };
    return openConfined({ spec, ...host, isTried, onLaunch, ...options });
  }

  async #openUnconfined(spec: SandboxSpec): Promise<Sandbox> {
    if (process.platform === "win32") {
      throw new SandboxFailed(
        "The local sandbox can't end what a process started on Windows: run Ambit on Linux",
      );
    }
    const { makeSessionFolder } = await import("./folders/data-folder.js");
    const { UnconfinedSandbox } = await import("./unconfined.js");
    const runner = await this.#runner();
    const folder = await makeSessionFolder(runner, spec.id);
    return new UnconfinedSandbox({ folder, runner, id: spec.id, log: spec.log });
  }
}
