/**
 * Shares the event loop among messages from outside: in one turn of the loop, those that are taken have `maxPerTurn`
 * characters together, or one longer message is taken alone. The others wait, first come, first served.
 */
export class LoopTurns {
  readonly #maxPerTurn: number;
  readonly #waiting: { readonly size: number; readonly go: () => void }[] = [];
  #taken = 0;
  #isScheduled = false;

  /** @param maxPerTurn characters. */
  constructor(maxPerTurn: number) {
    this.#maxPerTurn = maxPerTurn;
  }

  /**
   * To be called before a message is parsed. @param size characters of the message.
   * @returns undefined if it may be parsed now, else a promise that settles when it may.
   */
  take(size: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#fits(size)) {
      this.#taken += size;
      this.#schedule();
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push({ size, go: resolve });
      this.#schedule();
    });
  }

  #fits(size: number): boolean {
    return this.#taken === 0 || this.#taken + size <= this.#maxPerTurn;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#taken = 0;
      for (
        let next = this.#waiting[0];
        next !== undefined && this.#fits(next.size);
        next = this.#waiting[0]
      ) {
        this.#waiting.shift();
        this.#taken += next.size;
        next.go();
      }
      if (this.#taken > 0) this.#schedule();
    });
  }
}

/** Of the whole process, which has one event loop. The most expensive 64 Ki characters of JSON hold it for 20 ms. */
export const loopTurns = new LoopTurns(65_536);
