/**
 * Events between the agent's output and a consumer that may be slower. It never rejects an event: `room` tells the
 * producer to stop reading, so the content stays within `capacity` plus one read.
 *
 * Separate from the runner's channel, which holds what is redacted: a harness yields its events, the runner takes each when
 * it may read it, and after a cancel the agent's output is still read, although it has no reader.
 */
export class EventQueue<Item extends NonNullable<unknown>> {
  #items: Item[] = [];
  #weights: number[] = [];
  #first = 0;
  #weight = 0;
  #ended = false;
  #error: Error | undefined;
  #waiting:
    | { resolve(result: IteratorResult<Item, undefined>): void; reject(error: Error): void }
    | undefined;
  #space: { readonly promise: Promise<void>; readonly open: () => void } | undefined;
  #unbounded = false;

  /**
   * All in the unit of the weights: about characters.
   *
   * @param maxLifted after `lift`. Default: without limit.
   */
  constructor(
    readonly capacity: number,
    readonly maxLifted = Number.POSITIVE_INFINITY,
  ) {}

  get full(): boolean {
    return this.#weight > this.capacity;
  }

  /** Whether a producer that is still read after `lift` has sent more than it may. */
  get overfull(): boolean {
    return this.#weight > this.maxLifted;
  }

  push(item: Item, weight = 0): void {
    if (this.#ended) return;
    if (this.#waiting !== undefined) {
      const { resolve } = this.#waiting;
      this.#waiting = undefined;
      resolve({ value: item, done: false });
      return;
    }
    this.#items.push(item);
    this.#weights.push(weight);
    this.#weight += weight;
  }

  /** Settles when there is room again; undefined if there is some now. */
  room(): Promise<void> | undefined {
    if (this.#unbounded || !this.full) return undefined;
    if (this.#space === undefined) {
      let open: () => void = () => undefined;
      const promise = new Promise<void>((resolve) => {
        open = resolve;
      });
      this.#space = { promise, open };
    }
    return this.#space.promise;
  }

  /**
   * From now on the producer keeps reading even without a consumer, to reach later messages, and stops by itself once the
   * queue is `overfull`.
   */
  lift(): void {
    this.#unbounded = true;
    this.#release();
  }

  /** Queued events are still delivered; then the iteration ends, or throws `error`. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.lift();
    if (this.#waiting === undefined) return;
    const { resolve, reject } = this.#waiting;
    this.#waiting = undefined;
    if (error === undefined) resolve({ value: undefined, done: true });
    else reject(error);
  }

  /** The next item, if there is one. */
  ready(): Item | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#weight -= this.#weights[this.#first] ?? 0;
    this.#first += 1;
    if (this.#first === this.#items.length || this.#first > 1_024) {
      this.#items = this.#items.slice(this.#first);
      this.#weights = this.#weights.slice(this.#first);
      this.#first = 0;
    }
    if (this.#space !== undefined && this.#weight <= this.capacity / 2) this.#release();
    return item;
  }

  /** For one consumer, which requests one item at a time. */
  next(): Promise<IteratorResult<Item, undefined>> {
    const item = this.ready();
    if (item !== undefined) return Promise.resolve({ value: item, done: false });
    if (this.#ended) {
      const error = this.#error;
      this.#error = undefined;
      return error === undefined ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #release(): void {
    this.#space?.open();
    this.#space = undefined;
  }
}
