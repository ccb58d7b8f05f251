import { uptime } from "node:os";

/** Two clocks that can't be set. The second one also counts while the machine is suspended. Milliseconds. */
export interface ClockReading {
  readonly monotonic: number;
  readonly sinceBoot: number;
}

const readClocks = (): ClockReading => ({
  monotonic: performance.now(),
  sinceBoot: uptime() * 1_000,
});

/**
 * How long this replica may act, by its own clocks. It begins when a renewal is sent, and the store's lease when that
 * arrives: so it is over first.
 */
export class Tenure {
  #since: ClockReading | undefined;

  constructor(
    readonly leaseMs: number,
    readonly read: () => ClockReading = readClocks,
  ) {}

  /** @param sent read before the renewal was sent. One that was sent earlier than the last one changes nothing. */
  renewed(sent: ClockReading): void {
    if (this.#since === undefined || sent.monotonic > this.#since.monotonic) this.#since = sent;
  }

  /** Negative when it is over. */
  get leftMs(): number {
    if (this.#since === undefined) return Number.NEGATIVE_INFINITY;
    const now = this.read();
    const { monotonic, sinceBoot } = this.#since;
    return this.leaseMs - Math.max(now.monotonic - monotonic, now.sinceBoot - sinceBoot);
  }
}
