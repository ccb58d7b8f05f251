import type { LogEnd, Records } from "./follow.js";

/** Groups of events that are kept at most: each costs memory beyond its text. */
const maxGroups = 16_384;

interface Kept extends Records {
  /** Characters of the whole log up to its end. */
  readonly end: number;
}

/** The latest part of a log, in memory, and those who wait for more. */
export class RecentRecords {
  readonly #groups: Kept[] = [];
  #last = 0;
  /** Characters of the whole log, and of what is no longer kept. */
  #written = 0;
  #dropped = 0;
  #result: string | undefined;
  /** What comes after so many characters of the log is kept in any case: a reader whom the run waits for needs it. */
  needed = Number.POSITIVE_INFINITY;
  readonly #waiting = new Set<() => void>();

  /** @param maxCharacters that are kept; always the last group. */
  constructor(readonly maxCharacters: number) {}

  /** The number of the last event. */
  get last(): number {
    return this.#last;
  }

  /** Characters of all events, those that are no longer kept included. */
  get written(): number {
    return this.#written;
  }

  /** Characters that are no longer kept. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The number of the first event that is kept. */
  get first(): number {
    return this.#groups[0]?.first ?? this.#last + 1;
  }

  /** The end of the log, once it has its result. */
  get end(): LogEnd | undefined {
    return this.#result === undefined ? undefined : { events: this.#last, result: this.#result };
  }

  add(records: Records): void {
    this.#written += records.text.length;
    this.#last = records.first + records.count - 1;
    this.#groups.push({ ...records, end: this.#written });
    this.#shrink();
    this.wake();
  }

  #shrink(): void {
    for (;;) {
      const [oldest] = this.#groups;
      const isOver = this.#groups.length > maxGroups || this.#written - this.#dropped > this.maxCharacters;
      if (oldest === undefined || !isOver || this.#groups.length === 1 || oldest.end > this.needed) return;
      this.#groups.shift();
      this.#dropped = oldest.end;
    }
  }

  finish(result: string): void {
    this.#result = result;
    this.wake();
  }

  /**
   * The groups after this event, up to so many characters, at least one if there is one. Undefined if they aren't kept
   * any more. A reader keeps no more than this page, however long it doesn't read.
   */
  after(event: number, maxCharacters: number): readonly Records[] | undefined {
    if (event >= this.#last) return [];
    if (this.first > event + 1) return undefined;
    const begin = this.#indexAfter(event);
    const limit = this.writtenUpTo(event) + maxCharacters;
    let end = begin + 1;
    while (end < this.#groups.length && (this.#groups[end]?.end ?? 0) <= limit) end += 1;
    return this.#groups.slice(begin, end);
  }

  /** Characters of the log up to this event, to the beginning of its group. */
  writtenUpTo(event: number): number {
    if (event >= this.#last) return this.#written;
    return this.#groups[this.#indexAfter(event) - 1]?.end ?? this.#dropped;
  }

  /** Resolves when something was added, the log ended, or the reader left. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
    });
  }

  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** The index of the group that has the next event. */
  #indexAfter(event: number): number {
    let [low, high] = [0, this.#groups.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const group = this.#groups[middle];
      if (group !== undefined && group.first + group.count <= event + 1) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

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
