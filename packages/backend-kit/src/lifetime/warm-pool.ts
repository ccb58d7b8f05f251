/** Something that was created in advance. */
export interface Prepared {
  /** False if it was lost while it waited. */
  readonly isUsable: boolean;
  /** Leaves nothing behind. */
  close(): Promise<void>;
}

export interface WarmPoolOptions<Shape, Kept extends Prepared> {
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
  make(shape: Shape, signal: AbortSignal): Promise<Kept>;
  /** Called with an error of creating, using or closing one. It is tried again after the next opening. */
  onFault(error: unknown): void;
}

const creationTimeoutMs = 60_000;

interface Waiting<Kept> {
  readonly key: string;
  readonly kept: Kept;
  readonly expiry: NodeJS.Timeout;
}

/**
 * Creates sandboxes in advance: as many of each shape as the last `size` openings used. What was taken
 * never comes back. One is created at a time, so that openings in progress lose little to it.
 */
export class WarmPool<Shape, Kept extends Prepared> {
  readonly #options: WarmPoolOptions<Shape, Kept>;
  /** The shapes of the last openings, oldest first. */
  #wanted: { readonly key: string; readonly shape: Shape }[] = [];
  #waiting: Waiting<Kept>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions<Shape, Kept>) {
    this.#options = options;
  }

  /** Takes one that fits such an opening; undefined if there is none. */
  take(shape: Shape): Kept | undefined {
    const key = keyOf(shape);
    for (const lost of this.#waiting.filter(({ kept }) => !kept.isUsable)) void this.#drop(lost);
    const found = this.#waiting.find((one) => one.key === key);
    if (found !== undefined) this.#remove(found);
    return found?.kept;
  }

  /**
   * The result of `use` with a waiting one; undefined if there is none, or if that one failed.
   *
   * @throws the signal's reason
   */
  async using<Result>(
    shape: Shape,
    use: (kept: Kept) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    const kept = this.take(shape);
    try {
      return kept === undefined ? undefined : await use(kept);
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
    await Promise.all([...this.#waiting].map((one) => this.#drop(one)));
  }

  #refill(): void {
    this.#filling ??= this.#fill().finally(() => {
      this.#filling = undefined;
    });
  }

  async #fill(): Promise<void> {
    for (const one of this.#beyondWanted()) void this.#drop(one);
    const closing = this.#closing.signal;
    for (let next = this.#missing(); next !== undefined && !closing.aborted; next = this.#missing()) {
      const { key, shape } = next;
      const signal = AbortSignal.any([closing, AbortSignal.timeout(creationTimeoutMs)]);
      try {
        this.#add(key, await this.#options.make(shape, signal));
      } catch (error) {
        if (closing.aborted) return;
        this.#wanted = this.#wanted.filter((one) => one.key !== key);
        this.#options.onFault(error);
      }
    }
  }

  /** The first shape of which fewer wait than were used. */
  #missing() {
    return this.#wanted.find(({ key }) => count(this.#waiting, key) < count(this.#wanted, key));
  }

  #beyondWanted(): readonly Waiting<Kept>[] {
    return this.#waiting.filter(
      ({ key }, at) => count(this.#waiting.slice(0, at), key) >= count(this.#wanted, key),
    );
  }

  #add(key: string, kept: Kept): void {
    const expire = () => {
      this.#wanted = this.#wanted.filter((one) => one.key !== key);
      void this.#drop(added);
    };
    const added = { key, kept, expiry: setTimeout(expire, this.#options.idleMs ?? 15 * 60_000).unref() };
    this.#waiting.push(added);
    // It was needed when it was begun.
    for (const one of this.#beyondWanted()) void this.#drop(one);
  }

  #remove(one: Waiting<Kept>): void {
    clearTimeout(one.expiry);
    this.#waiting = this.#waiting.filter((other) => other !== one);
  }

  async #drop(one: Waiting<Kept>): Promise<void> {
    this.#remove(one);
    try {
      await one.kept.close();
    } catch (error) {
      this.#options.onFault(error);
    }
  }
}

const keyOf = (shape: unknown) => JSON.stringify(shape);

function count(all: readonly { readonly key: string }[], key: string): number {
  return all.filter((one) => one.key === key).length;
}
