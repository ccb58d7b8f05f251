/** Something that was created in advance. */
export interface Prepared {
  /** False if it was lost while it waited. */
  readonly isUsable: boolean;
  /** Leaves nothing behind. */
  close(): Promise<void>;
}

export interface WarmPoolOptions<Shape, Item extends Prepared> {
  /** The maximum that waits, of all shapes. 0: none is created. */
  readonly size: number;
  /** Milliseconds after which an unused one is closed. Default a quarter of an hour. */
  readonly idleMs?: number;
  /**
   * Milliseconds between an opening and the creation for the next one, so that it doesn't slow the new session. Default
   * 200.
   */
  readonly delayMs?: number;
  /** Creates one that any opening of this shape may take. */
  make(shape: Shape, signal: AbortSignal): Promise<Item>;
  /** Called with an error of creating, using or closing one. It is tried again after the next opening. */
  onFault(error: unknown): void;
}

const creationTimeoutMs = 60_000;

interface Waiting<Item> {
  readonly key: string;
  readonly prepared: Item;
  readonly expiry: NodeJS.Timeout;
}

/**
 * Creates sandboxes in advance: as many of each shape as the last `size` openings used. What was taken
 * never comes back. One is created at a time, so that openings in progress lose little to it.
 */
export class WarmPool<Shape, Item extends Prepared> {
  readonly #options: WarmPoolOptions<Shape, Item>;
  /** The shapes of the last openings, oldest first. */
  #wanted: { readonly key: string; readonly shape: Shape }[] = [];
  #waiting: Waiting<Item>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions<Shape, Item>) {
    this.#options = options;
  }

  /** Takes one that fits such an opening; undefined if there is none. */
  take(shape: Shape): Item | undefined {
    const key = keyOf(shape);
    for (const lost of this.#waiting.filter(({ prepared }) => !prepared.isUsable)) void this.#drop(lost);
    const fitting = this.#waiting.find((waiting) => waiting.key === key);
    if (fitting !== undefined) this.#remove(fitting);
    return fitting?.prepared;
  }

  /**
   * The result of `use` with a waiting one; undefined if there is none, or if that one failed.
   *
   * @throws the signal's reason
   */
  async using<Result>(
    shape: Shape,
    use: (prepared: Item) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const prepared = this.take(shape);
    try {
      return prepared === undefined ? undefined : await use(prepared);
    } catch (error) {
      signal.throwIfAborted();
      this.#options.onFault(error);
      return undefined;
    }
  }

  /** Records the shape of an opening, since the next ones may have the same. */
  want(shape: Shape): void {
    const { size, delayMs = 200 } = this.#options;
    if (size === 0 || this.#closing.signal.aborted) return;
    this.#wanted = [...this.#wanted, { key: keyOf(shape), shape }].slice(-size);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refill(), delayMs);
    this.#timer.unref();
  }

  /** Closes all that wait, aborts the one that is being created, and creates no more. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#filling;
    await Promise.all([...this.#waiting].map((waiting) => this.#drop(waiting)));
  }

  #refill(): void {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  async #fill(): Promise<void> {
    for (const surplus of this.#beyondWanted()) void this.#drop(surplus);
    const closing = this.#closing.signal;
    for (let next = this.#missing(); next !== undefined && !closing.aborted; next = this.#missing()) {
      const { key, shape } = next;
      const signal = AbortSignal.any([closing, AbortSignal.timeout(creationTimeoutMs)]);
      try {
        this.#add(key, await this.#options.make(shape, signal));
      } catch (error) {
        if (closing.aborted) return;
        this.#wanted = this.#wanted.filter((wanted) => wanted.key !== key);
        this.#options.onFault(error);
      }
    }
  }

  /** The first shape of which fewer wait than were used. */
  #missing() {
    return this.#wanted.find(({ key }) => count(this.#waiting, key) < count(this.#wanted, key));
  }

  #beyondWanted(): readonly Waiting<Item>[] {
    return this.#waiting.filter(
      ({ key }, at) => count(this.#waiting.slice(0, at), key) >= count(this.#wanted, key),
    );
  }

  #add(key: string, prepared: Item): void {
    const expire = () => {
      this.#wanted = this.#wanted.filter((wanted) => wanted.key !== key);
      void this.#drop(added);
    };
    const added = { key, prepared, expiry: setTimeout(expire, this.#options.idleMs ?? 15 * 60_000).unref() };
    this.#waiting.push(added);
    // It was needed when it was begun.
    for (const surplus of this.#beyondWanted()) void this.#drop(surplus);
  }

  #remove(waiting: Waiting<Item>): void {
    clearTimeout(waiting.expiry);
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
  }

  async #drop(waiting: Waiting<Item>): Promise<void> {
    this.#remove(waiting);
    try {
      await waiting.prepared.close();
    } catch (error) {
      this.#options.onFault(error);
    }
  }
}

const keyOf = (shape: unknown) => JSON.stringify(shape);

function count(all: readonly { readonly key: string }[], key: string): number {
  return all.filter((entry) => entry.key === key).length;
}
