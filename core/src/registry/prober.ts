import { setTimeout as sleep } from "node:timers/promises";
import type { Capability } from "../contract/index.js";
import { messageOf, PluginBrokeContract } from "../errors.js";
import { checkedReturn, inOffer, type Probed, pluginReturns } from "../plan/index.js";
import { type Actor, type Finding, type Log, newPluginAbort, unlessAborted } from "../plugin/index.js";
import type { ProbeSettings } from "./configuration.js";

interface KeptFindings {
  readonly findings: ReadonlyMap<Capability, Finding>;
  readonly probedAt: number;
  /** Its probe returned what no probe may. */
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
  /** How each probe under way is ended early. */
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

  /** Whether its evidence is recent enough to plan with. */
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

  /** The actor failed although it was proven: it is probed again before it is used. */
  invalidate(actor: Actor<never>): void {
    this.#evidence.delete(actor);
    // A probe that began before the failure proves nothing about the time after it.
    this.#underWay.delete(actor);
  }

  /** The actor left an error unhandled: a probe under way, which may wait for ever, has failed with it. */
  fail(actor: Actor<never>, error: unknown): void {
    const fail = this.#failing.get(actor);
    if (fail === undefined) this.invalidate(actor);
    else fail(error);
  }

  async #refreshOne(actor: Actor<never>): Promise<void> {
    // Repeated if the evidence was invalidated while the probe ran.
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

  #within(actor: Actor<never>, given: readonly Finding[]): ReadonlyMap<Capability, Finding> {
    const findings = new Map<Capability, Finding>();
    for (const finding of given) {
      // A probe may reduce the claims, never extend them.
      if (!actor.claims.includes(finding.capability)) {
        const fields = { actor: actor.name, capability: finding.capability };
        this.log.warn(fields, "a finding beyond the claims is ignored");
        continue;
      }
      // Of two contradictory findings, the negative one counts.
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
        const known = await lastWords(probing, late);
        return {
          findings: actor.claims.map((capability) => known.get(capability) ?? lateFinding(capability, late)),
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

/** Milliseconds in which a probe may still say what it waited for, once its time is over. */
const lastWordsMs = 1_000;

/** What a probe has found out about why it takes so long. A finding that repeats that it does says nothing. */
async function lastWords(
  probing: Promise<readonly Finding[]>,
  late: string,
): Promise<ReadonlyMap<Capability, Finding>> {
  const silence = new AbortController();
  const silent = sleep(lastWordsMs, [], { signal: silence.signal }).catch(() => []);
  const findings: readonly Finding[] = await Promise.race([probing.catch(() => []), silent]);
  silence.abort();
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
