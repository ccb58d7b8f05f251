import { readFile } from "node:fs/promises";
import { codeOf, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
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
  // Also for a probe, which trusts other authorities: a file that can't be read is found before a run needs it.
  const added = await readAuthorities(trustedAuthorities, plugin);
  return openCredentialBroker(secrets, trusted === undefined ? { added, refresh } : { trusted, refresh });
}

/** The content of a backend's `trustedAuthorities`. @throws SandboxFailed for a file that can't be read. */
export function readAuthorities(paths: readonly string[], plugin: string): Promise<readonly string[]> {
  return Promise.all(paths.map((path) => authorityIn(path, plugin)));
}

async function authorityIn(path: string, plugin: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const fix = "correct the path, or let the runner read the file";
    const message = `${plugin}'s trustedAuthorities names ${path}, which can't be read (${codeOf(cause)}): ${fix}`;
    throw new SandboxFailed(message, { cause });
  }
}
