import { join } from "node:path/posix";
import { SandboxFailed } from "@ambit/core/plugin";
import { type CredentialBroker, hashedName, systemBundle } from "@ambit/egress/credentials";
import type { MountSettings } from "dockerode";
import type { Container } from "./container.js";

const store = "/etc/ssl/certs";

/** The image's store, which the engine copies into it: root writes to it, and no process of a run is root. */
export const trustVolume: MountSettings = {
  Type: "volume",
  Source: "",
  Target: store,
  VolumeOptions: { NoCopy: false, Labels: {}, DriverConfig: { Name: "local", Options: {} } },
};

/** Arguments: the session's authority, this host's bundle, the bundle to make, the authority's hashed name. */
const script = `set -eu; umask 022
for own in ${store}/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem "$2"; do
  [ ! -s "$own" ] || break
done
{ cat "$own"; echo; cat "$1"; } > "$3"
cd ${store}; rm -f ca-certificates.crt; cp "$3" ca-certificates.crt; cp "$1" ambit-session.pem
ln -sf ambit-session.pem "$4"; chmod 755 .; chmod 644 "$1" "$3" ca-certificates.crt ambit-session.pem`;

/**
 * Makes the session's authority known to all programs of a container, besides those that its image trusts; where the
 * image has no authorities, besides those of this host.
 */
export async function bringTrust(
  container: Container,
  { authority }: Pick<CredentialBroker, "authority">,
  folder: string,
  signal: AbortSignal,
): Promise<{ readonly authority: string; readonly bundle: string }> {
  const [own, host, bundle] = ["authority.pem", "host.pem", "bundle.pem"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  await container.upload(own, Buffer.from(authority), signal);
  await container.upload(host, Buffer.from(await systemBundle()), signal);
  const argv = ["/bin/sh", "-c", script, "sh", own, host, bundle, hashedName()];
  const { code, output } = await container.run(argv, signal);
  if (code !== 0) throw new SandboxFailed(`The container's trust store couldn't be made: ${output}`);
  return { authority: own, bundle };
}
