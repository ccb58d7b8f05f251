import { cp, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type CredentialBroker, hashedName, systemBundle } from "@ambit/egress/credentials";
import { makeReadableFolder, writeReadable } from "../../folders/readable.js";
import type { ShownPath } from "../launch/arguments.js";
import { inside } from "../launch/inside.js";

const store = "/etc/ssl/certs";
const bundleName = "ca-certificates.crt";
const authorityName = "ambit-session.pem";

/**
 * What a session's jails trust in addition to the host's authorities: two files for programs that read them from
 * variables and, if the host has Debian's store, a copy of it with the session's authority for all others.
 *
 * @param folder the session's folder; written to once.
 * @returns the mounts of every jail, in this order.
 */
export async function makeTrustStore(
  folder: string,
  broker: CredentialBroker,
): Promise<readonly ShownPath[]> {
  const bundle = `${await systemBundle()}${broker.authority}`;
  const trust = join(folder, "trust");
  await makeReadableFolder(trust);
  const [authorityFile, bundleFile] = [join(trust, "authority.pem"), join(trust, "bundle.pem")];
  await writeReadable(authorityFile, broker.authority);
  await writeReadable(bundleFile, bundle);
  const shown = [
    { source: authorityFile, path: inside.trust.authority },
    { source: bundleFile, path: inside.trust.bundle },
  ];
  if (!(await isFolder(store))) return shown;
  const copy = join(trust, "certs");
  // Links stay links: almost all lead to /usr, which is there.
  await cp(store, copy, { recursive: true, verbatimSymlinks: true });
  await makeReadableFolder(copy);
  const target = join(copy, bundleName);
  // The host's may be a link to somewhere that must not be written.
  await rm(target, { force: true });
  await writeReadable(target, bundle);
  await writeReadable(join(copy, authorityName), broker.authority);
  await symlink(authorityName, join(copy, hashedName()));
  return [{ source: copy, path: store }, ...shown];
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
