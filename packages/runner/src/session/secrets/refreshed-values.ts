/** Earlier values of one credential that a session remembers, and characters of all of them. */
const maxEarlier = 8;
const maxEarlierCharacters = 8_192;

export interface RefreshedValue {
  /** The credential's. */
  readonly name: string;
  readonly value: string;
  /** It, and the parts of it that are secret by themselves. */
  readonly secrets: readonly string[];
}

/**
 * The values that a session's credentials got while it lived: the present ones, and earlier ones as long as there is room.
 * Output is redacted of all of them.
 */
export class RefreshedValues {
  /** Oldest first. */
  #kept: readonly RefreshedValue[] = [];

  get secrets(): ReadonlySet<string> {
    return secretsOf(this.#kept);
  }

  /** By credential. */
  get byName(): Readonly<Record<string, readonly string[]>> {
    const groups = Map.groupBy(this.#kept, ({ name }) => name);
    return Object.fromEntries([...groups].map(([name, kept]) => [name, kept.map(({ value }) => value)]));
  }

  /**
   * Adds one, and forgets the oldest that don't fit besides it.
   * @param fits whether so many secrets may be searched for
   * @returns false if there is no room even without earlier ones: nothing changes then
   */
  add(added: RefreshedValue, fits: (secrets: ReadonlySet<string>) => boolean): boolean {
    const { name, value } = added;
    const earlier = this.#kept.filter((one) => one.name === name && one.value !== value).slice(-maxEarlier);
    let kept = [...this.#kept.filter((one) => one.name !== name || earlier.includes(one)), added];
    while (earlierCharacters(kept) > maxEarlierCharacters || !fits(secretsOf(kept))) {
      const oldest = kept.find((one) => isEarlier(one, kept));
      if (oldest === undefined) return false;
      kept = kept.filter((one) => one !== oldest);
    }
    this.#kept = kept;
    return true;
  }
}

function earlierCharacters(kept: readonly RefreshedValue[]): number {
  const earlier = kept.filter((one) => isEarlier(one, kept));
  return earlier.reduce((sum, { value }) => sum + value.length, 0);
}

/** Whether the credential has got another value since. */
const isEarlier = (one: RefreshedValue, kept: readonly RefreshedValue[]) =>
  kept.findLast(({ name }) => name === one.name) !== one;

const secretsOf = (kept: readonly RefreshedValue[]) => new Set(kept.flatMap(({ secrets }) => secrets));
