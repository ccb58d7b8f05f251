/**
 * The outputs of calls while the SDK handles their results, which has only their keys: to copy and check megabytes of text
 * there would take one long turn of the event loop.
 */
export class KeptResults {
  readonly #byKey = new Map<string, string>();
  #last = 0;
  #characters = 0;

  /** @param maxCharacters of all. Beyond, the oldest goes: a server may send results that nothing waits for. */
  constructor(readonly maxCharacters: number) {}

  /** @returns its key */
  keep(output: string): string {
    this.#last += 1;
    const key = String(this.#last);
    this.#byKey.set(key, output);
    this.#characters += output.length + costOfOne;
    for (const oldest of this.#byKey.keys()) {
      if (this.#characters <= this.maxCharacters || oldest === key) break;
      this.take(oldest);
    }
    return key;
  }

  take(key: string): string | undefined {
    const output = this.#byKey.get(key);
    if (output === undefined) return undefined;
    this.#byKey.delete(key);
    this.#characters -= output.length + costOfOne;
    return output;
  }
}

/** Characters that an empty output counts as. */
const costOfOne = 64;
