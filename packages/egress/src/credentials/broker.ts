import type { SecureContext } from "node:tls";
import type { HiddenCredential } from "@ambit/core/plugin";
import { Replacements, replacementsFor } from "../replacements.js";
import type { Target } from "../target.js";
import type { SessionAuthority } from "./authority.js";
import { type BoundCredential, isBoundTo } from "./bound.js";
import { gitVariables, type TrustFiles, trustVariables } from "./environment.js";
import type { AskForSecret } from "./refresh.js";
import { CredentialValues } from "./values.js";

export interface BrokerOptions {
  /** Authorities, in PEM, whose servers may get a credential. Default: Node's and this host's. */
  readonly trusted?: readonly string[];
  /** Additional authorities in PEM, such as a company's. Default: none. */
  readonly added?: readonly string[];
  /** Asks for a new value of a credential that has `refresh`. Default: there is none. */
  readonly refresh?: AskForSecret | undefined;
}

/** One session's credentials, which its egress proxy adds to requests. Kept in memory only. */
export interface CredentialBroker {
  /** The placeholder of each value, by name. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** The session's certificate authority in PEM, for the trust stores inside. Its key stays here. */
  readonly authority: string;
  /** With their present values. */
  readonly credentials: readonly BoundCredential[];
  readonly trust: BrokerOptions;
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
  /**
   * Variables for a process inside: those that make it trust the authority; for the agent also those that make git send
   * placeholders.
   *
   * @param given the process's own variables, which aren't changed.
   */
  environment(
    role: "agent" | "tool",
    files: TrustFiles,
    given: Readonly<Record<string, string>>,
  ): Readonly<Record<string, string>>;
}

/**
 * Creates placeholders and an authority for a session.
 * @throws TypeError for no credentials: none needs a broker; for one with `refresh` without a way to ask
 */
export async function openCredentialBroker(
  secrets: readonly HiddenCredential[],
  trust: BrokerOptions = {},
): Promise<CredentialBroker> {
  if (secrets.length === 0) throw new TypeError("A broker without credentials would only open TLS");
  const replacements = new Map<string, Replacements>();
  const values = new CredentialValues(secrets, trust.refresh, () => replacements.clear());
  const authority = await makeAuthority();
  const credentialsFor = (target: Target) =>
    target.kind === "name" ? values.current.filter((credential) => isBoundTo(credential, target)) : [];
  return {
    placeholders: Object.fromEntries(values.current.map(({ name, placeholder }) => [name, placeholder])),
    authority: authority.certificate,
    get credentials() {
      return values.current;
    },
    trust,
    credentialsFor,
    ready: (names) => values.ready(names),
    contextFor: (name) => authority.contextFor(name),
    replacementsFor: (target) => {
      const key = `${target.host}:${target.port}`;
      const known = replacements.get(key);
      if (known !== undefined) return known;
      const made = new Replacements(
        credentialsFor(target)
          .flatMap((credential) => values.allOf(credential))
          .flatMap(({ value, secret, placeholder }) =>
            [...new Set([value, secret])].flatMap((text) => replacementsFor(text, placeholder)),
          ),
      );
      replacements.set(key, made);
      return made;
    },
    environment: (role, files, given) => ({
      ...trustVariables(files),
      ...given,
      ...(role === "agent" ? gitVariables(values.current, given) : {}),
    }),
  };
}

/** An authority whose key stays in this process. */
export async function makeAuthority(): Promise<SessionAuthority> {
  // Creating certificates needs a library that takes 125 ms to load, and that most servers never need.
  const { SessionAuthority } = await import("./authority.js");
  return SessionAuthority.make();
}
