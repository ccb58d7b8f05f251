import { join } from "node:path/posix";
import { type Command, SandboxFailed } from "@ambit/core/plugin";
import type { CredentialBroker } from "./broker.js";
import { trustVariables } from "./environment.js";
import { imageTrustCommand } from "./image-store.js";
import { systemBundle } from "./trust.js";

/** What a sandbox's platform can do as root, before the run's first process. */
export interface ImageAccess {
  /** Writes a file that everyone can read, and creates missing folders. */
  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Runs a command to its end. */
  run(
    argv: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly code: number | null; readonly output: string }>;
}

export interface ImageTrust {
  readonly access: ImageAccess;
  /** The folder for Ambit's own files inside. */
  readonly folder: string;
  /** Of the session's credentials, if it has some. */
  readonly broker: Pick<CredentialBroker, "authority" | "environment"> | undefined;
  /** The deployer's, in PEM: what programs inside trust besides the image's. */
  readonly authorities: readonly string[];
}

/**
 * Adds the session's certificate authority and the deployer's to those that all programs of an image trust.
 *
 * @returns the variables of a command; undefined where there is nothing to add.
 * @throws SandboxFailed
 */
export async function trustInImage(
  { access, folder, broker, authorities }: ImageTrust,
  signal: AbortSignal,
): Promise<((command: Command) => Readonly<Record<string, string>>) | undefined> {
  const added = [...(broker === undefined ? [] : [broker.authority]), ...authorities];
  if (added.length === 0) return undefined;
  const path = (name: string) => join(folder, "trust", `${name}.pem`);
  const files = { authority: path("authority"), host: path("host"), bundle: path("bundle") };
  await access.upload(files.authority, Buffer.from(`${added.join("\n").trim()}\n`), signal);
  await access.upload(files.host, Buffer.from(await systemBundle()), signal);
  const { code, output } = await access.run(imageTrustCommand(files), signal);
  if (code !== 0) throw new SandboxFailed(`The image's trust store couldn't be made: ${output}`);
  return ({ role = "tool", env }) =>
    broker?.environment(role, files, env) ?? { ...trustVariables(files), ...env };
}
