import { type DependencyContainer, type InjectionToken, container as root } from "tsyringe";
import type { PluginsResponse } from "../contract/index.js";
import type { Candidates } from "../plan/index.js";
import type { Actor, Log, RunObserver, StoreBackend } from "../plugin/index.js";
import type { PluginEntry, ProbeSettings } from "./configuration.js";
import { type ImportPlugin, type LoadedPlugin, loadPlugins } from "./load.js";
import { Prober } from "./prober.js";
import type { Registration } from "./registrar.js";
import type { StoredEvidence } from "./stored-evidence.js";
import { actorTokens } from "./tokens.js";

/** What `GET /plugins` says of one actor. */
export type ActorDescription = PluginsResponse["actors"][number];

/** The loaded plugins, with the evidence of their actors on this host. */
export class Registry {
  readonly #prober: Prober;

  private constructor(
    readonly container: DependencyContainer,
    readonly plugins: readonly LoadedPlugin[],
    readonly registrations: readonly Registration[],
    /** They observe runs and act in none. */
    readonly observers: readonly RunObserver[],
    /** Undefined where no plugin offers one. */
    readonly store: StoreBackend | undefined,
    settings: ProbeSettings,
    log: Log,
  ) {
    this.#prober = new Prober(settings, log);
  }

  /** @throws PluginLoadFailed with all failures. */
  static async load(
    entries: readonly PluginEntry[],
    importPlugin: ImportPlugin,
    settings: ProbeSettings,
    log: Log,
  ): Promise<Registry> {
    // Its own container: two registries in one process share nothing.
    const container = root.createChildContainer();
    const loaded = await loadPlugins(entries, container, importPlugin, log);
    const { plugins, registrations, observers, store } = loaded;
    return new Registry(container, plugins, registrations, observers, store, settings, log);
  }

  get probing(): boolean {
    return this.#prober.probing;
  }

  /** All actors, with evidence that is fresh enough to plan with. */
  async candidates(): Promise<Candidates> {
    await this.#prober.refresh(this.#actors());
    return this.candidatesAsSeen();
  }

  /** The same with the latest evidence, without waiting: what isn't proven yet counts as missing. */
  candidatesAsSeen(): Candidates {
    const probed = <A extends Actor<never>>(actor: A) => this.#prober.probed(actor);
    return {
      sandboxes: this.#all(actorTokens.sandbox).map(probed),
      executors: this.#all(actorTokens.executor).map(probed),
      deliveries: this.#all(actorTokens.delivery).map(probed),
      harnesses: this.#all(actorTokens.harness).map(probed),
      toolSources: this.#all(actorTokens.toolSource).map(probed),
      gateways: this.#all(actorTokens.gateway).map(probed),
    };
  }

  /** The actor failed where it was proven: it is probed again before the next plan. */
  invalidate(actor: Actor<never>): void {
    this.#prober.invalidate(actor);
  }

  /** Whether every actor has valid evidence, so that a plan needn't wait for a probe. */
  get isProbed(): boolean {
    return this.#actors().every((actor) => this.#prober.freshSince(actor) !== undefined);
  }

  /** The valid evidence of each actor. */
  evidence(): StoredEvidence {
    return this.registrations.flatMap(({ plugin, kind, name, actor }) => {
      const probedAt = this.#prober.freshSince(actor);
      if (probedAt === undefined) return [];
      return [{ plugin, kind, name, probedAt, findings: [...this.#prober.probed(actor).findings.values()] }];
    });
  }

  /** Restores evidence of an earlier process. Evidence of actors that aren't loaded is ignored. */
  restore(evidence: StoredEvidence): void {
    for (const { plugin, kind, name, actor } of this.registrations) {
      const stored = evidence.find((one) => one.plugin === plugin && one.kind === kind && one.name === name);
      if (stored !== undefined) this.#prober.restore(actor, stored.findings, stored.probedAt);
    }
  }

  /** All actors are probed again before the next plan. */
  invalidateAll(): void {
    for (const actor of this.#actors()) this.#prober.invalidate(actor);
  }

  async describe(): Promise<readonly ActorDescription[]> {
    await this.#prober.refresh(this.#actors());
    return this.registrations.map(({ plugin, kind, name, actor }) => {
      const { findings, probedAt } = this.#prober.probed(actor);
      const { site, claims } = actor;
      return { plugin, kind, name, site, claims: [...claims], findings: [...findings.values()], probedAt };
    });
  }

  #actors(): readonly Actor<never>[] {
    return Object.values(actorTokens).flatMap((token) => this.#all<Actor<never>>(token));
  }

  /** An empty list where nothing is registered; tsyringe would throw. */
  #all<A>(token: InjectionToken<A>): readonly A[] {
    return this.container.isRegistered(token) ? this.container.resolveAll(token) : [];
  }
}
