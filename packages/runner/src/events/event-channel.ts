/**
 * Many writers, one reader, bounded: `push` resolves when the reader has caught up, so that a slow client slows
 * the agent instead of filling our memory.
 */
export class EventChannel<Event> implements AsyncIterable<Event> {
  readonly #waiting: Event[] = [];
  #size = 0;
  readonly #writers: (() => void)[] = [];
  #reader: (() => void) | undefined;
  #closed = false;

  /**
   * A push beyond either limit waits itself.
   * @param capacity events that may wait.
   * @param characters that they may take together.
   */
  constructor(
    readonly capacity = 256,
    readonly characters = 1_048_576,
  ) {}

  /** Characters that what waits takes. */
  get size(): number {
    return this.#size;
  }

  /** Resolves at once while there is room. After `close` the event is dropped: nobody reads any more. */
  push(event: Event, size = 0): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#waiting.push(event);
    this.#size += size;
    this.#wakeReader();
    if (this.#waiting.length <= this.capacity && this.#size <= this.characters) return undefined;
    return new Promise((resolve) => this.#writers.push(resolve));
  }

  /** Ends the reader's loop once it has read what is waiting. */
  close(): void {
    this.#closed = true;
    this.#wakeReader();
    this.#wakeWriters();
  }

  /** Nobody reads any more: what waits is dropped. */
  abandon(): void {
    this.#waiting.length = 0;
    this.#size = 0;
    this.close();
  }

  /** By hand: each async generator on its way would cost an event as much as the rest of the way. */
  [Symbol.asyncIterator](): AsyncIterator<Event, undefined> {
    let batch: IterableIterator<Event> = [].values();
    const next = async (): Promise<IteratorResult<Event, undefined>> => {
      for (;;) {
        const taken = batch.next();
        if (taken.done !== true) return taken;
        if (this.#waiting.length > 0) {
          batch = this.#waiting.splice(0).values();
          this.#size = 0;
          this.#wakeWriters();
        } else if (this.#closed) {
          return { done: true, value: undefined };
        } else {
          await new Promise<void>((resolve) => {
            this.#reader = resolve;
          });
        }
      }
    };
    return { next };
  }

  #wakeReader(): void {
    this.#reader?.();
    this.#reader = undefined;
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}
