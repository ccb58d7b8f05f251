import { setMaxListeners } from "node:events";
import type { Finding, Probed } from "../boundary/index.js";
import type { Capability } from "../contract/index.js";
import type { Actor, Log } from "../plugin/index.js";
import type { ProbeSettings } from "./configuration.js";

interface Evidence {
  readonly findings: ReadonlyMap<Capability, Finding>;
  readonly probedAt: number;
}

/** Keeps what was seen of each actor on this host, and looks again when it is too old or was invalidated. */
export class Prober {
  readonly #evidence = new Map<Actor<never>, Evidence>();
  readonly #underWay = new Map<Actor<never>, Promise<void>>();

  constructor(
    readonly settings: ProbeSettings,
    readonly log: Log,
  ) {}

  /** Whether some probe is running. */
  get probing(): boolean {
    return this.#underWay.size > 0;
  }

  /** What was seen last; nothing is proven of an actor that was never probed. */
  probed<A extends Actor<never>>(actor: A): Probed<A> {
    const evidence = this.#evidence.get(actor);
    return {
      actor,
      findings: evidence?.findings ?? new Map(),
      probedAt: new Date(evidence?.probedAt ?? 0).toISOString(),
    };
  }

  /** Resolves when the evidence of every actor is fresh; two callers share one probe. */
  async refresh(actors: readonly Actor<never>[]): Promise<void> {
    await Promise.all(actors.map((actor) => this.#refreshOne(actor)));
  }

  /** The actor failed where it was proven: it is probed again before it is used. */
  invalidate(actor: Actor<never>): void {
    this.#evidence.delete(actor);
  }

  #refreshOne(actor: Actor<never>): Promise<void> | undefined {
    const evidence = this.#evidence.get(actor);
    if (evidence !== undefined && Date.now() - evidence.probedAt < this.settings.maxAgeMs) return undefined;
    const underWay = this.#underWay.get(actor);
    if (underWay !== undefined) return underWay;
    const probing = this.#probe(actor).finally(() => this.#underWay.delete(actor));
    this.#underWay.set(actor, probing);
    return probing;
  }

  async #probe(actor: Actor<never>): Promise<void> {
    const findings = new Map<Capability, Finding>();
    if (actor.claims.length > 0) {
      for (const finding of await this.#ask(actor)) {
        // A probe may shrink the claims, nothing may grow them.
        if (actor.claims.includes(finding.capability)) findings.set(finding.capability, finding);
        else
          this.log.warn(
            { actor: actor.name, capability: finding.capability },
            "a finding beyond the claims is ignored",
          );
      }
    }
    this.#evidence.set(actor, { findings, probedAt: Date.now() });
  }

  async #ask(actor: Actor<never>): Promise<readonly Finding[]> {
    const limit = AbortSignal.timeout(this.settings.timeoutMs);
    // One listener a canary: many of them are no leak.
    setMaxListeners(0, limit);
    const late = new Promise<never>((_resolve, reject) => {
      limit.addEventListener(
        "abort",
        () => reject(new Error(`took longer than ${this.settings.timeoutMs} ms`)),
        {
          once: true,
        },
      );
    });
    try {
      return await Promise.race([actor.probe(limit), late]);
    } catch (error) {
      this.log.warn({ actor: actor.name, error }, "a probe failed");
      const reason = `its probe failed (${error instanceof Error ? error.message : String(error)})`;
      const cure = "the runner's log has the cause; then probe again with `ambit doctor`";
      return actor.claims.map((capability) => ({ capability, proven: false, reason, cure }));
    }
  }
}
