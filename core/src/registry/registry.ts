/** The loaded plugins, and the evidence of their actors on this host. */

import {
  type ActorDescription,
  type Capability,
  type MarkedValue,
  type RunRequestSchema,
  requestSchemaWith,
} from "../contract/index.js";
import { messageOf, PluginBrokeContract } from "../errors.js";
import {
  type Candidates,
  checkedReturn,
  inOffer,
  originOf,
  type PluginOffer,
  type Probed,
  pluginReturns,
} from "../plan/index.js";
import {
  type Actor,
  type BlobsBackend,
  type Dialect,
  type Door,
  type Finding,
  type Log,
  newPluginAbort,
  type Registrar,
  type RunObserver,
  type StoreBackend,
  type ToolPolicy,
  type UpstreamProxy,
  unlessAborted,
} from "../plugin/index.js";
import { resultWithin } from "../plugin/scope.js";
import {
  type ImportPlugin,
  type LoadedPlugin,
  loadPlugins,
  type PluginEntry,
  type ProbeSettings,
} from "./load.js";
import type { NamedOffer, Offered, Registration } from "./registrar.js";

/** The loaded plugins, with the evidence of their actors on this host. */
export class Registry {
  readonly registrations: readonly Registration[];
  /** Everything that the plugins offer, of every kind, in configured order. */
  readonly offers: readonly NamedOffer[];
  /** The observers of runs. */
  readonly observers: readonly RunObserver[];
  /** Undefined where no plugin offers one. */
  readonly store: StoreBackend | undefined;
  /** Undefined where no plugin offers one. */
  readonly blobs: BlobsBackend | undefined;
  /** The dialects, which translate requests in this order before they are validated. */
  readonly dialects: readonly Dialect[];
  /** The doors, which serve clients of other protocols. */
  readonly doors: readonly Door[];
  /** The contract, with the fields that the dialects add. */
  readonly requestSchema: RunRequestSchema;
  /** The policies, which decide on calls of the requests' own tools. */
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
   * @param sandbox the only sandbox that is needed, so that other sandboxes' probes aren't awaited. Default: all.
   */
  async candidates(sandbox?: string): Promise<Candidates> {
    await this.#refresh(({ kind, actor }) => kind !== "sandbox" || actor.name === (sandbox ?? actor.name));
    return this.knownCandidates();
  }

  /** All actors with their latest evidence, without waiting. A claim that isn't proven yet counts as missing. */
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

  /** Called when an actor failed although it was proven. It is probed again before the next plan. */
  invalidate(actor: Actor<never>): void {
    this.#prober.invalidate(actor);
  }

  /** Called when a plugin left an error unhandled, which invalidates the evidence of its actors. */
  faulted(offer: PluginOffer, error: unknown): void {
    const plugin = originOf(offer)?.plugin;
    for (const { actor, ...registration } of this.registrations)
      if (registration.plugin === plugin) this.#prober.fail(actor, error);
  }

  /** Whether an earlier process proved too little: `invalidateRestored` lets its evidence be gathered again. */
  get isRestoredInPart(): boolean {
    return this.#restoredInPart.length > 0;
  }

  invalidateRestored(): void {
    for (const actor of this.#restoredInPart.splice(0)) this.#prober.invalidate(actor);
  }

  /** Invalidates all evidence, so that it is gathered again before it is used. */
  invalidateAll(): void {
    for (const { actor } of this.registrations) this.#prober.invalidate(actor);
  }

  /**
   * Every actor with fresh evidence.
   * @param onWaiting receives the names of the actors whose probes are awaited, whenever that changes.
   */
  async describe(
    onWaiting: (names: readonly string[]) => void = () => {},
  ): Promise<readonly ActorDescription[]> {
    const waiting = new Set(this.registrations.filter(({ actor }) => !this.#prober.isFresh(actor)));
    onWaiting([...waiting].map(({ actor }) => actor.name));
    await Promise.all(
      this.registrations.map(async (registration) => {
        await this.#prober.refresh([registration.actor]);
        if (waiting.delete(registration)) onWaiting([...waiting].map(({ actor }) => actor.name));
      }),
    );
    return this.known();
  }

  /** Every actor with the latest evidence, without waiting; without findings where it was never probed. */
  known(): readonly ActorDescription[] {
    return this.registrations.map((registration) => this.#describe(registration));
  }

  /** The actors whose evidence is valid now, without waiting. */
  evidence(): readonly ActorDescription[] {
    const valid = this.registrations.filter(({ actor }) => this.#prober.isFresh(actor));
    return valid.map((registration) => this.#describe(registration));
  }

  /** Restores evidence of an earlier process. Evidence of actors that aren't loaded is ignored. */
  restore(evidence: readonly ActorDescription[]): void {
    for (const { plugin, kind, actor } of this.registrations) {
      const stored = evidence.find(
        (registration) =>
          registration.plugin === plugin && registration.kind === kind && registration.name === actor.name,
      );
      if (stored === undefined) continue;
      this.#prober.restore(actor, stored.findings, Date.parse(stored.probedAt));
      const { findings } = this.#prober.probed(actor);
      if (!actor.claims.every((claim) => findings.get(claim)?.proven)) this.#restoredInPart.push(actor);
    }
  }

  #refresh(isNeeded: (registration: Registration) => boolean = () => true): Promise<void> {
    return this.#prober.refresh(this.registrations.filter(isNeeded).map(({ actor }) => actor));
  }

  #describe({ plugin, kind, actor }: Registration): ActorDescription {
    const { findings, probedAt } = this.#prober.probed(actor);
    const { name, site, claims } = actor;
    return { plugin, kind, name, site, claims: [...claims], findings: [...findings.values()], probedAt };
  }
}

interface KeptFindings {
  readonly findings: ReadonlyMap<Capability, Finding>;
  readonly probedAt: number;
  /** Set if the actor's probe broke its contract. */
  readonly fault?: PluginBrokeContract | undefined;
}

interface Answer {
  readonly findings: readonly Finding[];
  readonly fault?: PluginBrokeContract;
}

/** Keeps the findings of each actor on this host, and probes again when they are too old or were invalidated. */
export class Prober {
  readonly #evidence = new Map<Actor<never>, KeptFindings>();
  readonly #underWay = new Map<Actor<never>, Promise<KeptFindings>>();
  /** The functions that end probes under way early. */
  readonly #failing = new Map<Actor<never>, (error: unknown) => void>();

  constructor(
    readonly settings: ProbeSettings,
    readonly log: Log,
  ) {}

  get probing(): boolean {
    return this.#underWay.size > 0;
  }

  /** The latest findings; none for an actor that was never probed. */
  probed<A extends Actor<never>>(actor: A): Probed<A> {
    const evidence = this.#evidence.get(actor);
    return {
      actor,
      findings: evidence?.findings ?? new Map(),
      probedAt: new Date(evidence?.probedAt ?? 0).toISOString(),
      fault: evidence?.fault,
    };
  }

  /** Whether an actor's evidence is recent enough to plan with. */
  isFresh(actor: Actor<never>): boolean {
    const evidence = this.#evidence.get(actor);
    if (evidence === undefined) return false;
    const { maxAgeMs, retryMs } = this.settings;
    const isUseless =
      actor.claims.length > 0 && ![...evidence.findings.values()].some(({ proven }) => proven);
    return Date.now() - evidence.probedAt < (isUseless ? Math.min(retryMs, maxAgeMs) : maxAgeMs);
  }

  /** Restores evidence of an earlier process, as far as it is within the claims and not dated in the future. */
  restore(actor: Actor<never>, findings: readonly Finding[], probedAt: number): void {
    if (probedAt > Date.now() || this.#evidence.has(actor)) return;
    this.#evidence.set(actor, { findings: this.#within(actor, findings), probedAt });
  }

  /** Resolves when the evidence of every actor is fresh; concurrent callers share one probe. */
  async refresh(actors: readonly Actor<never>[]): Promise<void> {
    await Promise.all(actors.map((actor) => this.#refreshOne(actor)));
  }

  /** Called when the actor failed although it was proven. It is probed again before it is used. */
  invalidate(actor: Actor<never>): void {
    this.#evidence.delete(actor);
    // A probe that began before the failure proves nothing about the time after it.
    this.#underWay.delete(actor);
  }

  /** Called when the actor left an error unhandled. A probe under way, which might never settle, fails with it. */
  fail(actor: Actor<never>, error: unknown): void {
    const fail = this.#failing.get(actor);
    if (fail === undefined) this.invalidate(actor);
    else fail(error);
  }

  async #refreshOne(actor: Actor<never>): Promise<void> {
    // The probe is repeated if the evidence was invalidated while it ran.
    while (!this.isFresh(actor)) await this.#probeOnce(actor);
  }

  async #probeOnce(actor: Actor<never>): Promise<void> {
    const underWay = this.#underWay.get(actor);
    const probing = underWay ?? this.#probe(actor);
    if (underWay === undefined) this.#underWay.set(actor, probing);
    const evidence = await probing;
    if (this.#underWay.get(actor) !== probing) return;
    this.#underWay.delete(actor);
    this.#evidence.set(actor, evidence);
  }

  async #probe(actor: Actor<never>): Promise<KeptFindings> {
    const { findings, fault } = await this.#ask(actor);
    return { findings: this.#within(actor, findings), probedAt: Date.now(), fault };
  }

  #within(actor: Actor<never>, reported: readonly Finding[]): ReadonlyMap<Capability, Finding> {
    const findings = new Map<Capability, Finding>();
    for (const finding of reported) {
      // A probe may only reduce the claims.
      if (!actor.claims.includes(finding.capability)) {
        const fields = { actor: actor.name, capability: finding.capability };
        this.log.warn(fields, "a finding beyond the claims is ignored");
        continue;
      }
      // If two findings contradict each other, the negative one counts.
      if (findings.get(finding.capability)?.proven !== false) findings.set(finding.capability, finding);
    }
    return findings;
  }

  /** Never rejects: a probe that fails is a finding on each claim. */
  async #ask(actor: Actor<never>): Promise<Answer> {
    const { timeoutMs } = this.settings;
    const limit = newPluginAbort();
    const late = `took longer than ${timeoutMs} ms`;
    const timer = setTimeout(() => limit.abort(new Error(late)), timeoutMs);
    const probing = (async () => {
      const returned: unknown = await inOffer(actor, () => actor.probe(limit.signal));
      return checkedReturn(actor, "probe", pluginReturns.findings, returned);
    })();
    const failed = new Promise<never>((_resolve, reject) => this.#failing.set(actor, reject));
    try {
      return { findings: await unlessAborted(limit.signal, () => Promise.race([probing, failed])) };
    } catch (error) {
      this.log.warn({ actor: actor.name, error }, "a probe failed");
      if (limit.signal.aborted) {
        const said = await lastWords(probing, late);
        return {
          findings: actor.claims.map((capability) => said.get(capability) ?? lateFinding(capability, late)),
        };
      }
      const fault = error instanceof PluginBrokeContract ? error : undefined;
      const reason = `its probe failed (${messageOf(error).replace(/\.$/, "")})`;
      const fix =
        fault === undefined
          ? "AMBIT_LOG_LEVEL=warn shows the cause; mend it, and probe again"
          : "its author corrects what probe() returns: a list of findings, each with its capability";
      const findings = actor.claims.map(
        (capability) => ({ capability, proven: false, reason, fix }) as const,
      );
      return { findings, ...(fault === undefined ? {} : { fault }) };
    } finally {
      clearTimeout(timer);
      this.#failing.delete(actor);
    }
  }
}

/** Milliseconds after a probe's time limit in which it may still report what it was waiting for. */
const lastWordsMs = 1_000;

/** The findings that say why a probe takes so long. A finding that only repeats the time-out says nothing. */
async function lastWords(
  probing: Promise<readonly Finding[]>,
  late: string,
): Promise<ReadonlyMap<Capability, Finding>> {
  const findings =
    (await resultWithin(
      probing.catch(() => []),
      lastWordsMs,
    )) ?? [];
  const byCapability = new Map<Capability, Finding>();
  for (const finding of findings) {
    if (finding.proven || finding.reason.includes(late)) continue;
    const { capability, reason, fix } = finding;
    const more = { reason: `${reason} (its probe ${late})`, fix: `${fix}, or raise probes.timeoutMs` };
    byCapability.set(capability, { capability, proven: false, ...more });
  }
  return byCapability;
}

function lateFinding(capability: Capability, late: string): Finding {
  const fix = "try again when this host is less busy, or raise probes.timeoutMs";
  return { capability, proven: false, reason: `its probe failed (${late})`, fix };
}
