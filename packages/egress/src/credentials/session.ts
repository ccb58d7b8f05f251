import { readFile } from "node:fs/promises";
import { SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import { type CredentialBroker, openCredentialBroker } from "./broker.js";

export interface SessionBrokerOptions {
  /** The plugin with the setting `trustedAuthorities`, for errors: `sandbox-local`. */
  readonly plugin: string;
  /** Absolute paths of PEM files: authorities besides those of this host and Node. */
  readonly trustedAuthorities: readonly string[];
  /** Authorities in PEM that replace the host's and those of the files. Default: not replaced. */
  readonly trusted?: readonly string[] | undefined;
}

/**
 * The broker of a sandbox's secrets; undefined if it has none.
 *
 * @throws SandboxFailed for a file that can't be read.
 */
export async function openSessionBroker(
  spec: Pick<SandboxSpec, "secrets" | "refreshSecret">,
  { plugin, trustedAuthorities, trusted }: SessionBrokerOptions,
): Promise<CredentialBroker | undefined> {
  const { secrets = [] } = spec;
  if (secrets.length === 0) return undefined;
  const refresh = spec.refreshSecret?.bind(spec);
  if (trusted !== undefined) return openCredentialBroker(secrets, { trusted, refresh });
  const added = trustedAuthorities.map(async (path) => {
    try {
      return await readFile(path, "utf8");
    } catch (cause) {
      throw new SandboxFailed(`${plugin}'s trustedAuthorities names ${path}, which can't be read`, { cause });
    }
  });
  return openCredentialBroker(secrets, { added: await Promise.all(added), refresh });
}
