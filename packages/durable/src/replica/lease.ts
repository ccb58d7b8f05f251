import { messageOf } from "@ambit/core";
import type { Renewal, Store } from "../store/index.js";
import { endLost, type LostRunEnder } from "./lost-result.js";

/** Milliseconds between two renewals while runs are here: the response also brings requests of other replicas. */
const busyMs = 250;

export interface LeaseOptions extends LostRunEnder {
  readonly store: Store;
  readonly replica: string;
  /** Where callers reach this replica. */
  readonly address: string;
  readonly leaseMs: number;
  /** Whether there are runs here that other replicas may have requests for. */
  readonly isBusy: () => boolean;
  readonly onRenewal: (renewal: Renewal) => void;
}

/** Renews this replica's lease, and ends the runs of replicas whose lease has expired. */
export class Lease {
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(readonly options: LeaseOptions) {}

  /** @throws Error when the store can't be reached. */
  async take(): Promise<void> {
    await this.#renew();
    this.#schedule();
  }

  /** Renews soon, since there are runs now. */
  hurry(): void {
    clearTimeout(this.#timer);
    this.#schedule();
  }

  /** Called before another process can listen at this address, which then waits for this lease to end. */
  async drain(): Promise<void> {
    const { store, replica, log } = this.options;
    await store.drain(replica).catch((error: unknown) => {
      log.warn({ error: messageOf(error) }, "that this server drains could not be stored");
    });
  }

  async leave(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#renewing;
    await this.options.store.leave(this.options.replica);
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const { leaseMs, isBusy } = this.options;
    const waitMs = isBusy() ? Math.min(busyMs, leaseMs / 5) : leaseMs / 5;
    this.#timer = setTimeout(() => {
      this.#renewing ??= this.#beat().finally(() => {
        this.#renewing = undefined;
        this.#schedule();
      });
    }, waitMs);
    this.#timer.unref();
  }

  async #beat(): Promise<void> {
    try {
      await this.#renew();
      await this.#endAbandoned();
    } catch (error) {
      this.options.log.warn({ error: messageOf(error) }, "the store could not be reached to renew the lease");
    }
  }

  async #renew(): Promise<void> {
    const { store, replica, address, leaseMs, onRenewal } = this.options;
    onRenewal(await store.renew(replica, address, leaseMs));
  }

  async #endAbandoned(): Promise<void> {
    const { store, replica, leaseMs } = this.options;
    if (performance.now() - this.#lookedAt < leaseMs / 5) return;
    this.#lookedAt = performance.now();
    for (const run of await store.abandoned()) {
      const fence = await store.takeOver(run.id, run.fence, replica);
      if (fence !== undefined) await endLost(this.options, run, fence);
    }
  }
}
