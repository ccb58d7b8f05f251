/** One request's part of the memory. */
export interface HeldShare {
  /** @returns false if there isn't enough room. */
  take(bytes: number): boolean;
  /** Releases everything that was taken. */
  giveBack(): void;
}

/** Bytes of requests in memory at once, of all runs. */
export class HeldBytes {
  #held = 0;

  constructor(readonly max: number) {}

  get held(): number {
    return this.#held;
  }

  share(): HeldShare {
    let own = 0;
    return {
      take: (bytes) => {
        if (this.#held + bytes > this.max) return false;
        this.#held += bytes;
        own += bytes;
        return true;
      },
      giveBack: () => {
        this.#held -= own;
        own = 0;
      },
    };
  }
}
