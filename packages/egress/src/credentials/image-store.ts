import { hashedName } from "./trust.js";

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
