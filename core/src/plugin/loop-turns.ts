interface Waiting {
  readonly size: number;
  readonly go: () => void;
}

/** Work that is done in one turn of the event loop, and what waits for the next: first come, first served. */
class Lane {
  readonly #maxPerTurn: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(maxPerTurn: number) {
    this.#maxPerTurn = maxPerTurn;
  }

  /** @returns whether it may be done in this turn. */
  take(size: number): boolean {
    if (this.#waiting.length > 0 || !this.#fits(size)) return false;
    this.#taken += size;
    return true;
  }

  wait(size: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ size, go: resolve }));
  }

  /** A new turn. @returns whether anything is done in it. */
  begin(): boolean {
    this.#taken = 0;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.size); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#taken += next.size;
      next.go();
    }
    return this.#taken > 0;
  }

  #fits(size: number): boolean {
    return this.#taken === 0 || this.#taken + size <= this.#maxPerTurn;
  }
}

/** The part of a turn's work that counts as small: it doesn't wait behind larger pieces. */
const smallPart = 1 / 16;
/** What a piece counts as at least: however small, to handle it takes some microseconds. */
const minPart = 1 / 512;

/**
 * Shares the event loop among all work whose size others choose: in one turn of the loop, pieces of `maxPerTurn` together
 * are done, or one larger piece alone. The others wait, so that nobody is served late for one caller's sake. Small pieces
 * have as much again for themselves: an ordinary message doesn't wait for large ones.
 *
 * Work that takes longer than some milliseconds is divided, and takes a turn for each piece.
 */
export class LoopTurns {
  readonly #small: Lane;
  readonly #large: Lane;
  readonly #maxSmall: number;
  readonly #minSize: number;
  #isScheduled = false;
  /** Whether somebody arrived since the last turn. */
  #hasArrived = false;
  #begunAt = 0;
  /** When the last turn with work ended, and what it took. Undefined while it goes on. */
  #last: { readonly endedAt: number; readonly tookMs: number } | undefined = { endedAt: 0, tookMs: 0 };

  /** @param maxPerTurn characters, see {@link take}. */
  constructor(maxPerTurn: number) {
    this.#small = new Lane(maxPerTurn);
    this.#large = new Lane(maxPerTurn);
    this.#maxSmall = maxPerTurn * smallPart;
    this.#minSize = maxPerTurn * minPart;
  }

  /**
   * To be called before the work. @param size characters that it reads; values count 16 more each.
   * @returns undefined if it may be done now, else a promise that settles when it may.
   */
  take(size: number): Promise<void> | undefined {
    const lane = size <= this.#maxSmall ? this.#small : this.#large;
    const counted = Math.max(size, this.#minSize);
    this.#schedule();
    return lane.take(counted) ? undefined : lane.wait(counted);
  }

  /**
   * Somebody new was let in. Node lets in one connection in each turn of the event loop: while others may be waiting, work
   * pauses for as long as its last turn took, so that turns are short.
   */
  arrived(): void {
    this.#hasArrived = true;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#pauses()) return this.#schedule();
      this.#begunAt = performance.now();
      this.#last = undefined;
      const isSmall = this.#small.begin();
      const isLarge = this.#large.begin();
      if (isSmall || isLarge) this.#schedule();
    });
  }

  #pauses(): boolean {
    const now = performance.now();
    this.#last ??= { endedAt: now, tookMs: Math.min(now - this.#begunAt, maxPauseMs) };
    const pauses = this.#hasArrived && now - this.#last.endedAt < this.#last.tookMs;
    this.#hasArrived = false;
    return pauses;
  }
}

/** Milliseconds that work pauses at most, as after a turn in which the process had no processor. */
const maxPauseMs = 50;

/** Characters of one piece of work: a millisecond for most, 20 for the most expensive JSON. */
export const loopTurnSize = 65_536;

/** Of the whole process, which has one event loop. */
export const loopTurns = new LoopTurns(loopTurnSize);
