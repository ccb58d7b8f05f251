import type { SandboxSpec } from "@ambit/core/plugin";
import { type CredentialBroker, openSessionBroker, readAuthorities } from "@ambit/egress/credentials";
import type { LocalConfig } from "../config.js";
import { makeTrustStore } from "./files/trust-store.js";
import type { ShownPath } from "./launch/arguments.js";

/** The credentials that stay outside a session's jails, and their placeholders. */
export interface SessionCredentials {
  readonly broker: CredentialBroker;
  /** The trust store of every jail of the session. */
  readonly shown: readonly ShownPath[];
}

/**
 * Takes the spec's secrets; undefined when it has none.
 *
 * @param folder the session's folder.
 * @param trusted authorities in PEM that replace the host's and the configuration's.
 */
export async function keepCredentials(
  spec: SandboxSpec,
  { trustedAuthorities }: Pick<LocalConfig, "trustedAuthorities">,
  folder: string,
  trusted: readonly string[] | undefined,
): Promise<SessionCredentials | undefined> {
  const broker = await openSessionBroker(spec, { plugin: "sandbox-local", trustedAuthorities, trusted });
  if (broker === undefined) return undefined;
  const added = await readAuthorities(trustedAuthorities, "sandbox-local");
  return { broker, shown: await makeTrustStore(folder, [broker.authority, ...added]) };
}
