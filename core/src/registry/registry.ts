import {
  type ActorDescription,
  type MarkedValue,
  type RunRequestSchema,
  requestSchemaWith,
} from "../contract/index.js";
import { type Candidates, originOf, type PluginOffer } from "../plan/index.js";
import type {
  Actor,
  BlobsBackend,
  Dialect,
  Door,
  Log,
  Registrar,
  RunObserver,
  StoreBackend,
  ToolPolicy,
  UpstreamProxy,
} from "../plugin/index.js";
import type { PluginEntry, ProbeSettings } from "./configuration.js";
import { type ImportPlugin, type LoadedPlugin, loadPlugins } from "./load.js";
import { Prober } from "./prober.js";
import type { NamedOffer, Offered, Registration } from "./registrar.js";

/** The loaded plugins, with the evidence of their actors on this host. */
export class Registry {
  readonly registrations: readonly Registration[];
  /** Everything that the plugins offer, of every kind, in configured order. */
  readonly offers: readonly NamedOffer[];
  /** They observe runs without acting in them. */
  readonly observers: readonly RunObserver[];
  /** Undefined where no plugin offers one. */
  readonly store: StoreBackend | undefined;
  /** Undefined where no plugin offers one. */
  readonly blobs: BlobsBackend | undefined;
  /** They translate requests before they are read, in this order. */
  readonly dialects: readonly Dialect[];
  /** They serve clients of other protocols. */
  readonly doors: readonly Door[];
  /** The contract, with the fields that the dialects add. */
  readonly requestSchema: RunRequestSchema;
  /** They decide on calls of the requests' own tools. */
  readonly toolPolicies: readonly ToolPolicy[];
  readonly #actors: Offered["actors"];
  readonly #prober: Prober;
  /** Actors for which an earlier process couldn't prove every claim. */
  readonly #restoredInPart: Actor<never>[] = [];

  private constructor(
    readonly plugins: readonly LoadedPlugin[],
    /** Values of the plugins' settings that their schemas mark as secret: never log or return them. */
    readonly secrets: readonly MarkedValue[],
    { offers, registrations, actors, observers, store, blobs, dialects, doors, toolPolicies }: Offered,
    settings: ProbeSettings,
    log: Log,
    /** The deployer's proxy; undefined without one. */
    readonly upstreamProxy?: UpstreamProxy,
  ) {
    this.offers = offers;
    this.registrations = registrations;
    this.observers = observers;
    this.store = store;
    this.blobs = blobs;
    this.dialects = dialects;
    this.doors = doors;
    this.requestSchema = requestSchemaWith(dialects.map(({ fields = {} }) => fields));
    this.toolPolicies = toolPolicies;
    this.#actors = actors;
    this.#prober = new Prober(settings, log);
  }

  /**
   * @param hasTenants whether tenants send requests. Default: only the deployer.
   * @param upstreamProxy the deployer's proxy. Default: none.
   * @throws PluginLoadFailed with all failures.
   */
  static async load(
    entries: readonly PluginEntry[],
    importPlugin: ImportPlugin,
    settings: ProbeSettings,
    log: Log,
    { hasTenants = false, upstreamProxy }: Partial<Pick<Registrar, "hasTenants" | "upstreamProxy">> = {},
  ): Promise<Registry> {
    const { plugins, offered, secrets } = await loadPlugins(entries, importPlugin, {
      log,
      hasTenants,
      upstreamProxy,
    });
    return new Registry(plugins, secrets, offered, settings, log, upstreamProxy);
  }

  /** Whether some probe is running. */
  get probing(): boolean {
    return this.#prober.probing;
  }

  /**
   * All actors, with evidence that is fresh enough to plan with.
   * @param sandbox the only one that is needed: the others' probes aren't waited for. Default: all.
   */
  async candidates(sandbox?: string): Promise<Candidates> {
    await this.#refresh(({ kind, actor }) => kind !== "sandbox" || actor.name === (sandbox ?? actor.name));
    return this.knownCandidates();
  }

  /** The same with the latest evidence, without waiting. What isn't proven yet counts as missing. */
  knownCandidates(): Candidates {
    const { sandbox, executor, delivery, harness, toolSource, gateway } = this.#actors;
    const plugins = new Map(this.registrations.map(({ actor, plugin }) => [actor, plugin]));
    const probed = <A extends Actor<never>>(actor: A) => {
      const plugin = plugins.get(actor);
      return { ...this.#prober.probed(actor), ...(plugin === undefined ? {} : { plugin }) };
    };
    return {
      sandboxes: sandbox.map(probed),
      executors: executor.map(probed),
      deliveries: delivery.map(probed),
      harnesses: harness.map(probed),
      toolSources: toolSource.map(probed),
      gateways: gateway.map(probed),
      upstreamProxy: this.upstreamProxy,
    };
  }

  /** The actor failed although it was proven: it is probed again before the next plan. */
  invalidate(actor: Actor<never>): void {
    this.#prober.invalidate(actor);
  }

  /** A plugin left an error unhandled: what it proved before says nothing of it now. */
  faulted(offer: PluginOffer, error: unknown): void {
    const plugin = originOf(offer)?.plugin;
    for (const { actor, ...one } of this.registrations)
      if (one.plugin === plugin) this.#prober.fail(actor, error);
  }

  /** Whether an earlier process proved too little: `invalidateRestored` lets its evidence be gathered again. */
  get isRestoredInPart(): boolean {
    return this.#restoredInPart.length > 0;
  }

  invalidateRestored(): void {
    for (const actor of this.#restoredInPart.splice(0)) this.#prober.invalidate(actor);
  }

  /** All evidence is gathered again before it is used. */
  invalidateAll(): void {
    for (const { actor } of this.registrations) this.#prober.invalidate(actor);
  }

  /**
   * Every actor with fresh evidence.
   * @param onWaiting receives the names of the actors whose probes are waited for, whenever that changes.
   */
  async describe(
    onWaiting: (names: readonly string[]) => void = () => {},
  ): Promise<readonly ActorDescription[]> {
    const waiting = new Set(this.registrations.filter(({ actor }) => !this.#prober.isFresh(actor)));
    onWaiting([...waiting].map(({ actor }) => actor.name));
    await Promise.all(
      this.registrations.map(async (one) => {
        await this.#prober.refresh([one.actor]);
        if (waiting.delete(one)) onWaiting([...waiting].map(({ actor }) => actor.name));
      }),
    );
    return this.known();
  }

  /** Every actor with the latest evidence, without waiting; without findings where it was never probed. */
  known(): readonly ActorDescription[] {
    return this.registrations.map((one) => this.#describe(one));
  }

  /** The actors whose evidence is valid now, without waiting. */
  evidence(): readonly ActorDescription[] {
    const valid = this.registrations.filter(({ actor }) => this.#prober.isFresh(actor));
    return valid.map((one) => this.#describe(one));
  }

  /** Restores evidence of an earlier process. Evidence of actors that aren't loaded is ignored. */
  restore(evidence: readonly ActorDescription[]): void {
    for (const { plugin, kind, actor } of this.registrations) {
      const stored = evidence.find(
        (one) => one.plugin === plugin && one.kind === kind && one.name === actor.name,
      );
      if (stored === undefined) continue;
      this.#prober.restore(actor, stored.findings, Date.parse(stored.probedAt));
      const { findings } = this.#prober.probed(actor);
      if (!actor.claims.every((claim) => findings.get(claim)?.proven)) this.#restoredInPart.push(actor);
    }
  }

  #refresh(isNeeded: (one: Registration) => boolean = () => true): Promise<void> {
    return this.#prober.refresh(this.registrations.filter(isNeeded).map(({ actor }) => actor));
  }

  #describe({ plugin, kind, actor }: Registration): ActorDescription {
    const { findings, probedAt } = this.#prober.probed(actor);
    const { name, site, claims } = actor;
    return { plugin, kind, name, site, claims: [...claims], findings: [...findings.values()], probedAt };
  }
}
