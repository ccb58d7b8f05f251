import { secretsIn, tooManySecrets } from "../../events/redaction/secrets.js";
import type { HideSecrets } from "../../operator.js";

/** What a session's output and the log are redacted of as long as it lives. */
export class SessionSecrets {
  readonly #given: Set<string>;
  readonly #refreshed = new RefreshedValues();
  /** Those that the log is redacted of already. */
  #hidden: ReadonlySet<string> = new Set();
  #reveal: () => void = () => {};

  constructor(given: Iterable<string> = []) {
    this.#given = new Set(given);
  }

  /** The credentials of every run so far: the sandbox and a kept agent may still reveal an earlier run's. */
  get all(): ReadonlySet<string> {
    return this.#given.union(this.#refreshed.secrets);
  }

  /** The values that credentials got meanwhile. */
  get refreshed(): Readonly<Record<string, readonly string[]>> {
    return this.#refreshed.byName;
  }

  /** Whether these fit in addition to the earlier ones. */
  mayRemember(secrets: readonly string[]): boolean {
    return tooManySecrets(this.all.union(new Set(secrets))) === undefined;
  }

  /** For as long as the session lives. */
  remember(secrets: readonly string[], hide: HideSecrets): void {
    for (const secret of secrets) this.#given.add(secret);
    this.#hideAll(hide);
  }

  /** A credential's new value, in place of its oldest ones if there are many. False if there is no room for it. */
  rememberValue(name: string, value: string, hide: HideSecrets): boolean {
    const secrets = secretsIn([{ kind: "password", value }]);
    const fits = (refreshed: ReadonlySet<string>) =>
      tooManySecrets(this.#given.union(refreshed)) === undefined;
    if (!this.#refreshed.add({ name, value, secrets }, fits)) return false;
    this.#hideAll(hide);
    return true;
  }

  /** The session is closed: the log is no longer redacted of them. */
  reveal(): void {
    this.#reveal();
  }

  #hideAll(hide: HideSecrets): void {
    const { all } = this;
    if (this.#hidden.symmetricDifference(all).size === 0) return;
    this.#hidden = all;
    const reveal = hide([...all]);
    this.#reveal();
    this.#reveal = reveal;
  }
}

/** Earlier values of one credential that a session remembers, and characters of all of them. */
const maxEarlier = 8;
const maxEarlierCharacters = 8_192;

interface RefreshedValue {
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
