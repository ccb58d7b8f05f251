import { readFile } from "node:fs/promises";
import { SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import { type CredentialBroker, openCredentialBroker } from "@ambit/egress/credentials";
import type { LocalConfig } from "../config.js";
import { makeTrustStore } from "./files/trust-store.js";
import type { ShownPath } from "./launch/arguments.js";

/** What stays outside a session's jails, and what stands there for it. */
export interface SessionCredentials {
  readonly broker: CredentialBroker;
  /** The trust store of every jail of the session. */
  readonly shown: readonly ShownPath[];
}

/**
 * Takes the spec's secrets; undefined when it has none.
 *
 * @param folder the session's own.
 * @param trusted authorities in PEM in place of the host's and the configuration's.
 */
export async function keepCredentials(
  { secrets = [] }: SandboxSpec,
  { trustedAuthorities }: Pick<LocalConfig, "trustedAuthorities">,
  folder: string,
  trusted: readonly string[] | undefined,
): Promise<SessionCredentials | undefined> {
  if (secrets.length === 0) return undefined;
  const added = await Promise.all(trustedAuthorities.map(readAuthority));
  const options = trusted === undefined ? { added } : { trusted };
  const broker = await openCredentialBroker(secrets, options);
  return { broker, shown: await makeTrustStore(folder, broker) };
}

async function readAuthority(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new SandboxFailed(`sandbox-local's trustedAuthorities names ${path}, which can't be read`, {
      cause,
    });
  }
}
