import type { SecureContext } from "node:tls";
import type { HiddenCredential } from "@ambit/core/plugin";
import { Replacements, replacementsFor } from "../replacements.js";
import type { Target } from "../target.js";
import type { SessionAuthority } from "./authority.js";
import { type BoundCredential, bindCredential, isBoundTo } from "./bound.js";
import { gitVariables, type TrustFiles, trustVariables } from "./environment.js";

export interface BrokerOptions {
  /** Authorities, in PEM, whose servers may get a credential. Default: Node's and this host's. */
  readonly trusted?: readonly string[];
  /** Additional authorities in PEM, such as a company's. Default: none. */
  readonly added?: readonly string[];
}

/** One session's credentials, which its egress proxy adds to requests. Kept in memory only. */
export interface CredentialBroker {
  /** The placeholder of each value, by name. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** The session's certificate authority in PEM, for the trust stores inside. Its key stays here. */
  readonly authority: string;
  readonly credentials: readonly BoundCredential[];
  readonly trust: BrokerOptions;
  /** The credentials that may be sent to this destination. If there are any, the proxy terminates TLS. */
  credentialsFor(target: Target): readonly BoundCredential[];
  contextFor(name: string): Promise<SecureContext>;
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

/** Creates placeholders and an authority for a session. @throws TypeError for no credentials: none needs a broker. */
export async function openCredentialBroker(
  secrets: readonly HiddenCredential[],
  trust: BrokerOptions = {},
): Promise<CredentialBroker> {
  if (secrets.length === 0) throw new TypeError("A broker without credentials would only open TLS");
  const authority = await makeAuthority();
  const credentials = secrets.map(bindCredential);
  const credentialsFor = (target: Target) =>
    target.kind === "name" ? credentials.filter((credential) => isBoundTo(credential, target)) : [];
  const replacements = new Map<string, Replacements>();
  return {
    placeholders: Object.fromEntries(credentials.map(({ name, placeholder }) => [name, placeholder])),
    authority: authority.certificate,
    credentials,
    trust,
    credentialsFor,
    contextFor: (name) => authority.contextFor(name),
    replacementsFor: (target) => {
      const key = `${target.host}:${target.port}`;
      const known = replacements.get(key);
      if (known !== undefined) return known;
      const made = new Replacements(
        credentialsFor(target).flatMap(({ value, secret, placeholder }) =>
          [...new Set([value, secret])].flatMap((text) => replacementsFor(text, placeholder)),
        ),
      );
      replacements.set(key, made);
      return made;
    },
    environment: (role, files, given) => ({
      ...trustVariables(files),
      ...given,
      ...(role === "agent" ? gitVariables(credentials, given) : {}),
    }),
  };
}

/** An authority whose key stays in this process. */
export async function makeAuthority(): Promise<SessionAuthority> {
  // Creating certificates needs a library that takes 125 ms to load, and that most servers never need.
  const { SessionAuthority } = await import("./authority.js");
  return SessionAuthority.make();
}
