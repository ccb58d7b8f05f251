import type { HiddenCredential } from "@ambit/core/plugin";
import { type BoundCredential, bindCredential, withValue } from "./bound.js";
import { type AskForSecret, CredentialExpiry } from "./refresh.js";

/** The values of a session's credentials, as they are now and as they were. */
export class CredentialValues {
  #current: readonly BoundCredential[];
  readonly #given: readonly BoundCredential[];
  /** Earlier values that responses must not contain, by credential. */
  #known: Readonly<Record<string, readonly string[]>> = {};
  readonly #expiries: ReadonlyMap<string, CredentialExpiry>;
  readonly #onChange: () => void;

  /**
   * @param onChange called when one has a new value.
   * @throws TypeError for a credential that must be refreshed, without a way to ask
   */
  constructor(secrets: readonly HiddenCredential[], ask: AskForSecret | undefined, onChange: () => void) {
    this.#given = secrets.map(bindCredential);
    this.#current = this.#given;
    this.#onChange = onChange;
    const refreshed = secrets.filter(({ refresh }) => refresh !== undefined);
    this.#expiries = new Map(refreshed.map((secret) => [secret.name, this.#expiryOf(secret, ask)]));
  }

  get current(): readonly BoundCredential[] {
    return this.#current;
  }

  /** Resolves when the values of these may be sent; with the reason if one may not. */
  async ready(names: readonly string[]): Promise<string | undefined> {
    const expiries = names.flatMap((name) => this.#expiries.get(name) ?? []);
    await Promise.all(expiries.map((expiry) => expiry.refreshed()));
    // Asked after all have waited: one may have expired meanwhile.
    return expiries.map(({ whyUnusable }) => whyUnusable).find((why) => why !== undefined);
  }

  /** Every value of a credential that a response must not contain, the present one first. */
  allOf(credential: BoundCredential): readonly BoundCredential[] {
    const { name } = credential;
    const given = this.#given.filter((one) => one.name === name);
    const known = Object.hasOwn(this.#known, name) ? (this.#known[name] ?? []) : [];
    return [credential, ...known.map((value) => withValue(credential, value)), ...given];
  }

  #expiryOf(secret: HiddenCredential, ask: AskForSecret | undefined): CredentialExpiry {
    if (ask === undefined) throw new TypeError(`There is no way to ask for new values of ${secret.name}`);
    return new CredentialExpiry(secret, ask, ({ value, known }) => {
      this.#known = known;
      this.#current = this.#current.map((one) => (one.name === secret.name ? withValue(one, value) : one));
      this.#onChange();
    });
  }
}
