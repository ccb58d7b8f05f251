/** Bytes of a stream that may be in flight at first, and so the most that is buffered for a reader that never reads. */
export const firstWindow = 512 * 1024;
/** The same of a stream whose reader keeps up. */
export const largestWindow = 2 * 1024 * 1024;
/** Bytes by which all windows of one transport may have grown together. */
const maxGrowth = 8 * 1024 * 1024;

/** The largest window that the other side can have after so many bytes were sent to it, whatever it says. */
export function windowAfter(sent: number): number {
  return Math.min(largestWindow, Math.max(firstWindow, 2 * sent));
}

/** What windows may still grow by: a limit for all streams of a transport, whatever the other side opens. */
export class GrowthBudget {
  #left = maxGrowth;

  /** @returns how much of it is granted. */
  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left);
    this.#left -= granted;
    return granted;
  }

  giveBack(granted: number): void {
    this.#left += granted;
  }
}

/** How much the other side may send on one stream, and what of it has been processed. */
export class ReceiveWindow {
  readonly #budget: GrowthBudget;
  #size = firstWindow;
  #untaken = 0;
  #owed = 0;
  #passed = 0;

  constructor(budget: GrowthBudget) {
    this.#budget = budget;
  }

  /** @returns false: more than the window allows. */
  arrived(bytes: number): boolean {
    if (this.#untaken + bytes > this.#size) return false;
    this.#untaken += bytes;
    return true;
  }

  /**
   * The reader has processed that many. Where the way is long, a window limits what a pipe carries: it grows with a reader that
   * has taken a whole one, to twice what it has taken at most.
   *
   * @returns how many more the other side is to be allowed now, if it is to be told.
   */
  taken(bytes: number): number | undefined {
    this.#untaken -= bytes;
    this.#owed += bytes;
    this.#passed += bytes;
    if (this.#owed < this.#size / 4) return undefined;
    let allowed = this.#owed;
    this.#owed = 0;
    if (this.#passed >= this.#size && this.#size < largestWindow) {
      const growth = this.#budget.take(Math.min(this.#size, largestWindow - this.#size));
      this.#size += growth;
      allowed += growth;
    }
    return allowed;
  }

  /** No more arrives. */
  close(): void {
    this.#budget.giveBack(this.#size - firstWindow);
    this.#size = firstWindow;
  }
}
