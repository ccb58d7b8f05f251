/**
 * Many writers, one reader, bounded: `push` resolves when the reader has caught up, so that a slow client slows
 * the agent instead of filling our memory.
 */
export class EventChannel<Event extends NonNullable<unknown>> implements AsyncIterable<Event> {
  #waiting: Event[] = [];
  /** The state of the reader. */
  #batch: readonly Event[] = [];
  #at = 0;
  #size = 0;
  readonly #writers: (() => void)[] = [];
  #reader: (() => void) | undefined;
  #closed = false;

  /**
   * A push beyond either limit waits.
   * @param capacity events that may wait.
   * @param characters that they may take together.
   */
  constructor(
    readonly capacity = 256,
    readonly characters = 1_048_576,
  ) {}

  /** Characters of the waiting events. */
  get size(): number {
    return this.#size;
  }

  /** Resolves immediately while there is room. After `close` the event is dropped, since nothing reads it. */
  push(event: Event, size = 0): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#waiting.push(event);
    this.#size += size;
    this.#wakeReader();
    if (this.#waiting.length <= this.capacity && this.#size <= this.characters) return undefined;
    return new Promise((resolve) => this.#writers.push(resolve));
  }

  /** Ends the reader's loop once it has read the waiting events. */
  close(): void {
    this.#closed = true;
    this.#wakeReader();
    this.#wakeWriters();
  }

  /** The reader has left: the waiting events are dropped. */
  abandon(): void {
    this.#waiting.length = 0;
    this.#size = 0;
    this.close();
  }

  /** The first waiting event; undefined if there is none. */
  take(): Event | undefined {
    if (this.#at === this.#batch.length) {
      if (this.#waiting.length === 0) return undefined;
      this.#batch = this.#waiting;
      this.#at = 0;
      this.#waiting = [];
      this.#size = 0;
      this.#wakeWriters();
    }
    const event = this.#batch[this.#at];
    this.#at += 1;
    return event;
  }

  /** All waiting events, in order. */
  takeAll(): readonly Event[] {
    const first = this.take();
    if (first === undefined) return [];
    const all = this.#at === 1 ? this.#batch : [first, ...this.#batch.slice(this.#at)];
    this.#at = this.#batch.length;
    return all;
  }

  /** Resolves when there is an event to take; with false at the end. */
  async more(): Promise<boolean> {
    while (this.#waiting.length === 0) {
      if (this.#closed) return false;
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
      });
    }
    return true;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, undefined, undefined> {
    do {
      for (let event = this.take(); event !== undefined; event = this.take()) yield event;
    } while (await this.more());
    return undefined;
  }

  /** After everything that is ready has been written, so that events that arrive together are read together. */
  #wakeReader(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    this.#reader = undefined;
    process.nextTick(reader);
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}
