import type { ConnectionDecision } from "@ambit/core/plugin";

/** Destinations that are listed one by one; further ones are counted together. */
const maxDestinations = 100;

/** A decision as often as it was made. */
export interface CountedDecision {
  readonly decision: ConnectionDecision;
  readonly count: number;
}

/** The boundary's decisions while no run has the session: its processes may still connect. The next run reports them. */
export class DecidedBetween {
  readonly #counted = new Map<string, { readonly decision: ConnectionDecision; count: number }>();

  add({ target, allowed, reason, failure, isReported }: ConnectionDecision): void {
    const key = JSON.stringify([allowed, target, reason, failure]);
    const isNew = !this.#counted.has(key) && this.#counted.size >= maxDestinations;
    const counted = isNew
      ? this.#of(JSON.stringify([allowed]), { target: "others", allowed, reason: "between two runs" })
      : this.#of(key, { target, allowed, reason: `between two runs: ${reason}`, failure, isReported });
    counted.count += 1;
  }

  /** All of them, once. */
  take(): readonly CountedDecision[] {
    const counted = [...this.#counted.values()];
    this.#counted.clear();
    return counted;
  }

  #of(key: string, decision: ConnectionDecision) {
    const counted = this.#counted.get(key) ?? { decision, count: 0 };
    this.#counted.set(key, counted);
    return counted;
  }
}
