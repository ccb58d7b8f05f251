import type { SecureContext } from "node:tls";
import type { HiddenCredential, RefreshedSecret } from "@ambit/core/plugin";
import { Replacements, replacementsFor } from "../replacements.js";
import type { Target } from "../target.js";
import { type BoundCredential, bindCredential, isBoundTo, withValue } from "./bound.js";

/** A new value is asked for this long before the known expiry: a request may be under way for a while. */
const maxMarginMs = 60_000;
/** At least so long before: clocks differ, and requests take time. */
const minMarginMs = 5_000;
/** After a failure, the platform isn't asked again for this long. */
const retryMs = 5_000;

export type AskForSecret = (name: string) => Promise<RefreshedSecret>;
type Refreshed = Extract<RefreshedSecret, { readonly ok: true }>;

/** When one credential needs a new value, and whether the one that it has may be sent. */
export class CredentialExpiry {
  readonly #name: string;
  readonly #ask: AskForSecret;
  readonly #take: (refreshed: Refreshed) => void;
  /** Milliseconds since 1970. Undefined while it isn't known. */
  #expiresAt: number | undefined;
  #marginMs = minMarginMs;
  #asking: Promise<void> | undefined;
  #failure: { readonly reason: string; readonly at: number } | undefined;

  /** @param take gets each new value before a request that waits for it goes on. */
  constructor({ name, refresh }: HiddenCredential, ask: AskForSecret, take: (refreshed: Refreshed) => void) {
    this.#name = name;
    this.#ask = ask;
    this.#take = take;
    if (refresh?.expiresAt !== undefined) this.#expires(Date.parse(refresh.expiresAt));
  }

  /** Asks for a new value if one is due. All requests that wait share one question to the platform. */
  async refreshed(): Promise<void> {
    if (!this.#isDue) return;
    this.#asking ??= this.#refresh().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  /** Why no value may be sent now; undefined if the present one may. */
  get whyUnusable(): string | undefined {
    if (this.#expiresAt === undefined || Date.now() < this.#expiresAt) return undefined;
    const reason = this.#failure?.reason ?? "it expired while the request waited";
    return `${this.#name} has expired, and there is no new value: ${reason}`;
  }

  get #isDue(): boolean {
    if (this.#expiresAt !== undefined && Date.now() < this.#expiresAt - this.#marginMs) return false;
    return this.#failure === undefined || performance.now() - this.#failure.at >= retryMs;
  }

  async #refresh(): Promise<void> {
    const refreshed = await this.#ask(this.#name);
    if (!refreshed.ok) {
      this.#failure = { reason: refreshed.reason, at: performance.now() };
      return;
    }
    this.#failure = undefined;
    this.#take(refreshed);
    this.#expires(refreshed.expiresAt);
  }

  /** A value that is valid for a short time is used for half of it. */
  #expires(at: number): void {
    this.#expiresAt = at;
    this.#marginMs = Math.min(maxMarginMs, Math.max(minMarginMs, (at - Date.now()) / 2));
  }
}

/** Authorities of servers that may get a credential. */
export interface ServerTrust {
  /** In PEM. Default: Node's and this host's. */
  readonly trusted?: readonly string[];
  /** Additional ones in PEM, such as a company's. Default: none. */
  readonly added?: readonly string[];
}

/** What a proxy needs of a session's credentials. */
export interface ProxyCredentials {
  /** With their present values. */
  readonly credentials: readonly BoundCredential[];
  readonly trust: ServerTrust;
  /** The credentials that may be sent to this destination. If there are any, the proxy terminates TLS. */
  credentialsFor(target: Target): readonly BoundCredential[];
  contextFor(name: string): Promise<SecureContext>;
  /**
   * Resolves when the values of these credentials may be sent, for which the platform may be asked for new ones; with the
   * reason if one may not.
   */
  ready(names: readonly string[]): Promise<string | undefined>;
  /** Values that a destination's responses must not contain. */
  replacementsFor(target: Target): Replacements;
}

/** One value that responses must not contain, and what replaces it. */
export type HiddenValue = Pick<BoundCredential, "value" | "secret" | "placeholder">;

/** The credentials as they are now. */
export interface CredentialState {
  readonly credentials: readonly BoundCredential[];
  /** All values of each, in the order of `credentials`. */
  readonly hidden: readonly (readonly HiddenValue[])[];
}

/** The part of `ProxyCredentials` that needs nothing but the credentials. */
export class HeldCredentials {
  #state: CredentialState;
  readonly #replacements = new Map<string, Replacements>();

  constructor(state: CredentialState) {
    this.#state = state;
  }

  get credentials(): readonly BoundCredential[] {
    return this.#state.credentials;
  }

  /** Of new values. */
  set state(state: CredentialState) {
    this.#state = state;
    this.#replacements.clear();
  }

  get state(): CredentialState {
    return this.#state;
  }

  credentialsFor(target: Target): readonly BoundCredential[] {
    return target.kind === "name"
      ? this.#state.credentials.filter((credential) => isBoundTo(credential, target))
      : [];
  }

  replacementsFor(target: Target): Replacements {
    const key = `${target.host}:${target.port}`;
    const existing = this.#replacements.get(key);
    if (existing !== undefined) return existing;
    const bound = this.credentialsFor(target);
    const made = new Replacements(
      this.#state.hidden
        .filter((_values, index) => bound.some((one) => one === this.#state.credentials[index]))
        .flat()
        .flatMap(({ value, secret, placeholder }) =>
          [...new Set([value, secret])].flatMap((text) => replacementsFor(text, placeholder)),
        ),
    );
    this.#replacements.set(key, made);
    return made;
  }
}

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
    const originals = this.#given.filter((one) => one.name === name);
    const earlierValues = Object.hasOwn(this.#known, name) ? (this.#known[name] ?? []) : [];
    return [credential, ...earlierValues.map((value) => withValue(credential, value)), ...originals];
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
