import { readFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { type Command, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import { type CredentialBroker, openCredentialBroker, systemBundle } from "@ambit/egress/credentials";
import type { DockerConfig } from "../config.js";

/** What stays outside a session's container, and how its programs trust the proxy that puts it on requests. */
export interface SessionCredentials {
  readonly broker: CredentialBroker;
  /** Files that must be in the container before the run's first process, by path: readable by all, written by none. */
  readonly files: ReadonlyMap<string, Buffer>;
  environment(command: Command): Readonly<Record<string, string>>;
}

/** Takes the spec's secrets; undefined when it has none. @param trusted authorities in place of the host's, in PEM. */
export async function keepCredentials(
  { id, secrets = [] }: SandboxSpec,
  { trustedAuthorities, bridge }: DockerConfig,
  trusted: readonly string[] | undefined,
): Promise<SessionCredentials | undefined> {
  if (secrets.length === 0) return undefined;
  const options =
    trusted === undefined ? { added: await Promise.all(trustedAuthorities.map(readAuthority)) } : { trusted };
  const broker = await openCredentialBroker(secrets, options);
  const folder = join(bridge.folder, id, "trust");
  const paths = { authority: join(folder, "authority.pem"), bundle: join(folder, "bundle.pem") };
  return {
    broker,
    files: new Map([
      [paths.authority, Buffer.from(broker.authority)],
      [paths.bundle, Buffer.from(`${await systemBundle()}${broker.authority}`)],
    ]),
    environment: ({ role = "tool", env }) => broker.environment(role, paths, env),
  };
}

async function readAuthority(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new SandboxFailed(`sandbox-docker's trustedAuthorities names ${path}, which can't be read`, {
      cause,
    });
  }
}
