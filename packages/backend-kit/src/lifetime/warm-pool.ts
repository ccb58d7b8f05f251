/** Something that was made before anyone asked for it. */
export interface Prepared {
  /** False once it was lost while it waited. */
  readonly isUsable: boolean;
  /** Leaves nothing behind. */
  close(): Promise<void>;
}

export interface WarmPoolOptions<Shape, Kept extends Prepared> {
  /** The most that wait at a time, of all shapes. 0: none is made. */
  readonly size: number;
  /** Milliseconds after which an unused one is closed. Default a quarter of an hour. */
  readonly idleMs?: number;
  /** Milliseconds between an opening and what is made for the next: the first moments belong to the session. Default 200. */
  readonly delayMs?: number;
  /** Makes one that any opening of this shape may take. */
  make(shape: Shape, signal: AbortSignal): Promise<Kept>;
  /** What couldn't be made, used or closed. It is tried again after the next opening. */
  onFault(error: unknown): void;
}

const creationTimeoutMs = 60_000;

interface Waiting<Kept> {
  readonly key: string;
  readonly kept: Kept;
  readonly expiry: NodeJS.Timeout;
}

/**
 * What openings will ask for, made ahead: as many of each shape as the last `size` openings asked for. What was taken
 * never comes back. One is made at a time, so that openings under way lose little to it.
 */
export class WarmPool<Shape, Kept extends Prepared> {
  readonly #options: WarmPoolOptions<Shape, Kept>;
  /** Of the last openings, oldest first. */
  #wanted: { readonly key: string; readonly shape: Shape }[] = [];
  #waiting: Waiting<Kept>[] = [];
  #timer: NodeJS.Timeout | undefined;
  #filling: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(options: WarmPoolOptions<Shape, Kept>) {
    this.#options = options;
  }

  /** One that waits for such an opening, which is the caller's from now on; undefined: there is none. */
  take(shape: Shape): Kept | undefined {
    const key = keyOf(shape);
    for (const lost of this.#waiting.filter(({ kept }) => !kept.isUsable)) void this.#drop(lost);
    const found = this.#waiting.find((one) => one.key === key);
    if (found !== undefined) this.#remove(found);
    return found?.kept;
  }

  /**
   * What `use` makes of one that waits; undefined where none does, or that one is no good.
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

  /** An opening asked for this shape: the next ones may do so too. */
  want(shape: Shape): void {
    const { size, delayMs = 200 } = this.#options;
    if (size === 0 || this.#closing.signal.aborted) return;
    this.#wanted = [...this.#wanted, { key: keyOf(shape), shape }].slice(-size);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refill(), delayMs);
    this.#timer.unref();
  }

  /** Closes all that wait, aborts the one that is being made, and makes none from now on. */
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

  /** The first shape of which fewer wait than were asked for. */
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
    // It was wanted when it was begun.
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
