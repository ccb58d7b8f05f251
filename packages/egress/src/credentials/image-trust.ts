import { join } from "node:path/posix";
import { SandboxFailed } from "@ambit/core/plugin";
import type { CredentialBroker } from "./broker.js";
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

/** Adds the session's certificate authority to those that all programs of an image trust. @throws SandboxFailed */
export async function installTrust(
  access: ImageAccess,
  { authority }: Pick<CredentialBroker, "authority">,
  folder: string,
  signal: AbortSignal,
) {
  const path = (name: string) => join(folder, `${name}.pem`);
  const files = { authority: path("authority"), host: path("host"), bundle: path("bundle") };
  await access.upload(files.authority, Buffer.from(authority), signal);
  await access.upload(files.host, Buffer.from(await systemBundle()), signal);
  const { code, output } = await access.run(imageTrustCommand(files), signal);
  if (code !== 0) throw new SandboxFailed(`The image's trust store couldn't be made: ${output}`);
  return files;
}
