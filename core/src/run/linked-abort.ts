/** A controller that follows several signals and lets go of them: `AbortSignal.any` keeps long-lived ones alive. */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #release: (() => void)[] = [];

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) {
      const follow = () => this.abort(source.reason);
      if (source.aborted) follow();
      source.addEventListener("abort", follow, { once: true });
      this.#release.push(() => source.removeEventListener("abort", follow));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason stands. */
  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
  }

  after(milliseconds: number, reason: () => unknown): void {
    const timer = setTimeout(() => this.abort(reason()), milliseconds);
    this.#release.push(() => clearTimeout(timer));
  }

  [Symbol.dispose](): void {
    for (const release of this.#release.splice(0)) release();
  }
}

/** Resolves when the signal aborts; at once when it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/**
 * The step's result, or the signal's reason as soon as it aborts. The step itself must see to what it opens
 * after that: its result is dropped.
 */
export async function unlessAborted<Result>(
  signal: AbortSignal,
  step: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  let follow = () => {};
  const abort = new Promise<never>((_resolve, reject) => {
    follow = () => reject(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
  });
  try {
    return await Promise.race([step(), abort]);
  } finally {
    signal.removeEventListener("abort", follow);
  }
}

/** Iterates, but once the signal aborts gives the source only so long to end by itself. */
export async function* bounded<Item>(
  source: AsyncIterable<Item>,
  signal: AbortSignal,
  graceMs: number,
): AsyncGenerator<Item, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let overdue = false;
  // Replaced at every step: racing each against one long-lived promise would pile up on it.
  let giveUp = () => {};
  const begin = () => {
    timer = setTimeout(() => {
      overdue = true;
      giveUp();
    }, graceMs);
  };
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  const step = () =>
    new Promise<IteratorResult<Item>>((resolve, reject) => {
      giveUp = () => reject(signal.reason);
      if (overdue) giveUp();
      iterator.next().then(resolve, reject);
    });
  try {
    for (let next = await step(); next.done !== true; next = await step()) yield next.value;
  } finally {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
    const returned = iterator.return?.();
    // A source that is overdue may never settle this either.
    if (!overdue) await returned;
  }
}
