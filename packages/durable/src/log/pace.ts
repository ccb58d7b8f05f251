import type { RecentRecords } from "./recent-records.js";

/** Characters that the reader who sets the pace may be behind; beyond, the run waits for it. */
const maxUnread = 262_144;

/** One reader of a log. */
export interface PacedReader {
  /** It has taken the records up to this one. */
  hasTaken(event: number): void;
  leave(): void;
}

/**
 * Makes a run wait for the reader of its log that came first, usually the caller that began it: of a log that keeps only the
 * latest records, that reader misses none. Nothing waits for the other readers, nor where nobody reads.
 */
export class Pace {
  /** Characters that each reader has taken, in the order in which they came. */
  readonly #readers = new Set<{ taken: number }>();
  #wakeWriter: (() => void) | undefined;
  #hasRunEnded = false;

  constructor(readonly recent: RecentRecords) {}

  join(after: number): PacedReader {
    const reader = { taken: this.recent.writtenUpTo(after) };
    this.#readers.add(reader);
    this.#proceed();
    return {
      hasTaken: (event) => {
        reader.taken = this.recent.writtenUpTo(event);
        this.#proceed();
      },
      leave: () => {
        this.#readers.delete(reader);
        this.#proceed();
      },
    };
  }

  /** What the run still writes is little: it waits for no reader. */
  runEnded(): void {
    this.#hasRunEnded = true;
    this.#proceed();
  }

  /** Resolves once the first reader is near enough, or the run is lost. */
  async room(signal: AbortSignal): Promise<void> {
    if (!this.#isAhead) return;
    const { promise, resolve: wake } = Promise.withResolvers<void>();
    const onAbort = () => wake();
    this.#wakeWriter = wake;
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) wake();
    await promise;
    signal.removeEventListener("abort", onAbort);
    this.#wakeWriter = undefined;
  }

  get #isAhead(): boolean {
    return !this.#hasRunEnded && this.recent.written - this.recent.needed > maxUnread;
  }

  #proceed(): void {
    const [first] = this.#readers;
    this.recent.needed = first?.taken ?? Number.POSITIVE_INFINITY;
    if (!this.#isAhead) this.#wakeWriter?.();
  }
}
