import { join } from "node:path/posix";
import { type Command, SandboxFailed } from "@ambit/core/plugin";
import type { CredentialBroker } from "./broker.js";
import { hashedName, systemBundle, trustVariables } from "./trust.js";

/**
 * The store of Debian, Alpine and others: one file with all authorities, and one file per authority with its hashed
 * name.
 */
export const imageStore = "/etc/ssl/certs";

const script = `set -eu; umask 022
for own in ${imageStore}/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem "$2"; do
  [ ! -s "$own" ] || break
done
{ cat "$own"; echo; cat "$1"; } > "$3"
cd ${imageStore}; rm -f ca-certificates.crt; cp "$3" ca-certificates.crt; cp "$1" ambit-session.pem
ln -sf ambit-session.pem "$4"; chmod 755 .; chmod 644 "$1" "$3" ca-certificates.crt ambit-session.pem`;

export interface ImageTrustFiles {
  /** The session's authority. */
  readonly authority: string;
  /** The runner's authorities, for an image that has none. */
  readonly host: string;
  /** Created by the command: the image's authorities, else the host's, and the session's. */
  readonly bundle: string;
}

/**
 * The command that adds a session's authority to an image's store, to be run as root, once, before the run's first
 * process. `imageStore` must be writable for root there, with what the image has in it. Paths are those inside. Pure.
 */
export function imageTrustCommand({ authority, host, bundle }: ImageTrustFiles): readonly string[] {
  return ["/bin/sh", "-c", script, "sh", authority, host, bundle, hashedName()];
}

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
