/**
 * The one buffer between a run and its log: many writers, one reader that takes all at once, bounded. `push` resolves when
 * the reader has caught up, so that a slow log slows the agent instead of filling our memory.
 */
export class EventChannel<Event extends NonNullable<unknown>> {
  #waiting: Event[] = [];
  #size = 0;
  readonly #writers: (() => void)[] = [];
  #reader: { readonly wake: () => void; readonly characters: number } | undefined;
  #closed = false;

  /** @param maxCharacters of the waiting events. A push beyond waits. The default is written in about a millisecond. */
  constructor(readonly maxCharacters = 131_072) {}

  /** Characters of the waiting events. */
  get size(): number {
    return this.#size;
  }

  /** Resolves immediately while there is room. After `close` the event is dropped, since nothing reads it. */
  push(event: Event, size: number): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#waiting.push(event);
    this.#size += size;
    this.#wakeReader();
    if (this.#size <= this.maxCharacters) return undefined;
    return new Promise((resolve) => this.#writers.push(resolve));
  }

  /** Ends the reader's loop once it has taken the waiting events. */
  close(): void {
    this.#closed = true;
    this.#wakeReader();
    this.#wakeWriters();
  }

  /** The reader has left: the waiting events are dropped. */
  abandon(): void {
    this.#waiting = [];
    this.#size = 0;
    this.close();
  }

  /** All waiting events, in order. */
  take(): readonly Event[] {
    const taken = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    this.#wakeWriters();
    return taken;
  }

  /** Resolves when there is an event to take; with false at the end. */
  async more(): Promise<boolean> {
    while (this.#waiting.length === 0) {
      if (this.#closed) return false;
      await new Promise<void>((resolve) => {
        this.#reader = { wake: resolve, characters: 0 };
      });
    }
    return true;
  }

  /** Resolves when the waiting events have this size, no more can come, or the time is over. */
  async gather(characters: number, timeoutMs: number): Promise<void> {
    if (this.#closed || this.#size >= characters) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#reader = undefined;
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#reader = { wake, characters };
    });
  }

  /** After everything that is ready has been written, so that events that arrive together are read together. */
  #wakeReader(): void {
    const reader = this.#reader;
    if (reader === undefined || (!this.#closed && this.#size < reader.characters)) return;
    this.#reader = undefined;
    process.nextTick(reader.wake);
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}
