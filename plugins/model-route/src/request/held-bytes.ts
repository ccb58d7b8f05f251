/** One request's part of what is held. */
export interface HeldShare {
  /** @returns false when there is no room for so many more. */
  take(bytes: number): boolean;
  /** Gives back all that was taken. */
  giveBack(): void;
}

/** Bytes of requests that are held at once, of all runs. */
export class HeldBytes {
  #held = 0;

  constructor(readonly most: number) {}

  get held(): number {
    return this.#held;
  }

  share(): HeldShare {
    let own = 0;
    return {
      take: (bytes) => {
        if (this.#held + bytes > this.most) return false;
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
