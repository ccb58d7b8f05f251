import { secretsIn, tooManySecrets } from "../../events/redaction/secrets.js";
import type { HideSecrets } from "../../operator.js";
import { RefreshedValues } from "./refreshed-values.js";

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
