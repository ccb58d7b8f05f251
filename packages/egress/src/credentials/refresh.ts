import type { HiddenCredential, RefreshedSecret } from "@ambit/core/plugin";

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
