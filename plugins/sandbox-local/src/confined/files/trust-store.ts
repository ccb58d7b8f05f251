import { cp, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { hashedName, systemBundle } from "@ambit/egress/credentials";
import { makeReadableFolder, writeReadable } from "../../folders/readable.js";
import type { ShownPath } from "../launch/arguments.js";
import { inside } from "../launch/inside.js";

const store = "/etc/ssl/certs";
const bundleName = "ca-certificates.crt";
const authorityName = "ambit-session.pem";

/**
 * What jails trust in addition to the host's authorities: a file with all for programs that read it from variables and, if
 * the host has Debian's store, a copy of it with the added ones for all others.
 *
 * @param folder of the session or the runner; written to once.
 * @param added authorities in PEM, the session's own first.
 * @returns the mounts of every jail, in this order.
 */
export async function makeTrustStore(
  folder: string,
  added: readonly string[],
): Promise<readonly ShownPath[]> {
  const authority = `${added.join("\n").trim()}\n`;
  // Java's keytool reads only the first.
  const bundle = `${authority}${await systemBundle()}`;
  const trust = join(folder, "trust");
  await makeReadableFolder(trust);
  const bundleFile = join(trust, "bundle.pem");
  await writeReadable(bundleFile, bundle);
  const shown = [{ source: bundleFile, path: inside.trust.bundle }];
  if (!(await isFolder(store))) return shown;
  const copy = join(trust, "certs");
  // Links stay links: almost all lead to /usr, which is there.
  await cp(store, copy, { recursive: true, verbatimSymlinks: true });
  await makeReadableFolder(copy);
  const target = join(copy, bundleName);
  // The host's may be a link to somewhere that must not be written.
  await rm(target, { force: true });
  await writeReadable(target, bundle);
  await writeReadable(join(copy, authorityName), authority);
  await symlink(authorityName, join(copy, hashedName()));
  return [{ source: copy, path: store }, ...shown];
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
