import { unlessAborted } from "@ambit/core/plugin";

export interface FairLimits {
  /** Slots in all. */
  readonly atOnce: number;
  /** Slots of one owner at most. */
  readonly perOwner: number;
  /** Waiting requests of one owner at most. */
  readonly waiting: number;
}

/**
 * A limited number of slots, shared fairly: waiting owners take turns, however many requests each of them has, and
 * none has more than its own limit.
 */
export class FairSlots {
  /** In the order of their turns. */
  readonly #waiting = new Map<object, (() => void)[]>();
  readonly #held = new Map<object, number>();
  #free: number;

  constructor(readonly limits: FairLimits) {
    this.#free = limits.atOnce;
  }

  /**
   * Resolves with the slot's release function once there is a slot; immediately with undefined if too many of this
   * owner wait.
   * @throws the signal's reason.
   */
  async acquire(owner: object, signal: AbortSignal): Promise<(() => void) | undefined> {
    signal.throwIfAborted();
    const queue = this.#waiting.get(owner) ?? [];
    if (queue.length === 0 && this.#mayTake(owner)) return this.#take(owner);
    if (queue.length >= this.limits.waiting) return undefined;
    this.#waiting.set(owner, queue);
    let turn = () => {};
    const granted = new Promise<void>((resolve) => {
      turn = resolve;
      queue.push(turn);
    });
    try {
      await unlessAborted(signal, () => granted);
    } catch (reason) {
      const at = queue.indexOf(turn);
      // Granted at the moment of the abort: passed on.
      if (at < 0) this.#release(owner);
      else queue.splice(at, 1);
      if (queue.length === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
      throw reason;
    }
    return this.#releaseOnce(owner);
  }

  #mayTake(owner: object): boolean {
    return this.#free > 0 && (this.#held.get(owner) ?? 0) < this.limits.perOwner;
  }

  #take(owner: object): () => void {
    this.#count(owner, 1);
    return this.#releaseOnce(owner);
  }

  #releaseOnce(owner: object): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#release(owner);
    };
  }

  #release(owner: object): void {
    this.#count(owner, -1);
    this.#grant();
  }

  #count(owner: object, change: 1 | -1): void {
    this.#free -= change;
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }

  /** Passes the slot to the first owner in turn that may have one, which then moves to the end. */
  #grant(): void {
    for (const [owner, queue] of this.#waiting) {
      if (this.#free === 0) return;
      if (!this.#mayTake(owner)) continue;
      const turn = queue.shift();
      this.#waiting.delete(owner);
      if (queue.length > 0) this.#waiting.set(owner, queue);
      if (turn === undefined) continue;
      this.#count(owner, 1);
      turn();
    }
  }
}
