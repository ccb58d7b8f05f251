import type { Harness, Prewarm } from "@ambit/core/plugin";

/** Milliseconds until the next attempt after a failed one; doubled after each. */
const retryMs = { first: 1_000, last: 300_000 };

/** One entry of a deployer's `prewarm`, and what has come of it. */
export class Wanted {
  /** Failed attempts in a row. */
  #failures = 0;
  /** Milliseconds since 1970. */
  #retryAt = 0;
  #isIdle = false;

  constructor(
    readonly harness: Harness,
    readonly prewarm: Prewarm,
  ) {}

  /** Milliseconds until another agent may be started; infinite while nobody asks for one. */
  waitMs(now: number): number {
    return this.#isIdle ? Number.POSITIVE_INFINITY : Math.max(0, this.#retryAt - now);
  }

  /** Nobody asked for its agents: none is started until a run asks. */
  rest(): void {
    this.#isIdle = true;
  }

  asked(): void {
    this.#isIdle = false;
  }

  started(): void {
    this.#failures = 0;
  }

  /** One couldn't be started, or a run may not have it. */
  failed(now: number): void {
    this.#retryAt = now + Math.min(retryMs.first * 2 ** this.#failures, retryMs.last);
    this.#failures += 1;
  }
}
