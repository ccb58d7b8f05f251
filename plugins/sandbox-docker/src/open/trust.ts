import { join } from "node:path/posix";
import { SandboxFailed } from "@ambit/core/plugin";
import { type CredentialBroker, imageTrustCommand, systemBundle } from "@ambit/egress/credentials";
import type { Container } from "./container.js";

/** Adds the session's certificate authority to those that all programs of a container trust through its image. */
export async function bringTrust(
  container: Container,
  { authority }: Pick<CredentialBroker, "authority">,
  folder: string,
  signal: AbortSignal,
) {
  const path = (name: string) => join(folder, `${name}.pem`);
  const files = { authority: path("authority"), host: path("host"), bundle: path("bundle") };
  await container.upload(files.authority, Buffer.from(authority), signal);
  await container.upload(files.host, Buffer.from(await systemBundle()), signal);
  const { code, output } = await container.run(imageTrustCommand(files), signal);
  if (code !== 0) throw new SandboxFailed(`The container's trust store couldn't be made: ${output}`);
  return files;
}
