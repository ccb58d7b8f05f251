import { createSecureContext, type SecureContext } from "node:tls";
import type { BoundCredential } from "../credentials/bound.js";
import { HeldCredentials, type ProxyCredentials, type ServerTrust } from "../credentials/values.js";
import type { Replacements } from "../replacements.js";
import type { Target } from "../target.js";
import {
  answers,
  type Question,
  receivedCredentials,
  type SentCredentials,
  type Served,
} from "./messages.js";

/** A gate's copy of the session's credentials, in memory only. New values and certificates are the runner's. */
export class RemoteCredentials implements ProxyCredentials {
  readonly trust: ServerTrust;
  readonly #held: HeldCredentials;
  readonly #ask: (question: Question) => Promise<unknown>;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  constructor(
    { trusted, ...sent }: NonNullable<Served["credentials"]>,
    ask: (question: Question) => Promise<unknown>,
  ) {
    this.trust = { trusted };
    this.#held = new HeldCredentials(receivedCredentials(sent));
    this.#ask = ask;
  }

  /** New values. */
  receive(sent: SentCredentials): void {
    this.#held.state = receivedCredentials(sent);
  }

  get credentials(): readonly BoundCredential[] {
    return this.#held.credentials;
  }

  credentialsFor(target: Target): readonly BoundCredential[] {
    return this.#held.credentialsFor(target);
  }

  replacementsFor(target: Target): Replacements {
    return this.#held.replacementsFor(target);
  }

  async ready(names: readonly string[]): Promise<string | undefined> {
    const expire = this.credentials.filter(
      ({ name, refresh }) => refresh !== undefined && names.includes(name),
    );
    if (expire.length === 0) return undefined;
    // A new value arrives before the answer.
    return answers.ready.parse(await this.#ask({ ready: expire.map(({ name }) => name) })) ?? undefined;
  }

  contextFor(name: string): Promise<SecureContext> {
    const known = this.#contexts.get(name);
    if (known !== undefined) return known;
    const made = this.#makeContext(name);
    this.#contexts.set(name, made);
    made.catch(() => this.#contexts.delete(name));
    return made;
  }

  async #makeContext(name: string): Promise<SecureContext> {
    const { key, certificate } = answers.certificate.parse(await this.#ask({ certificate: name }));
    return createSecureContext({ key, cert: certificate, minVersion: "TLSv1.2" });
  }
}
