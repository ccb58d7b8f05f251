/** Requests that begin runs under one key, one after the other: each finds what the one before has begun. */
export class Beginnings {
  /** The last one of each key. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Whether a request with this key is beginning its run. */
  has(key: string): boolean {
    return this.#last.has(key);
  }

  /** @param key undefined: of no other request, so it waits for none. */
  async inTurn<Result>(key: string | undefined, begin: () => Promise<Result>): Promise<Result> {
    if (key === undefined) return begin();
    const before = this.#last.get(key);
    const beginning = Promise.resolve(before)
      .catch(() => undefined)
      .then(begin);
    this.#last.set(key, beginning);
    try {
      return await beginning;
    } finally {
      if (this.#last.get(key) === beginning) this.#last.delete(key);
    }
  }
}
