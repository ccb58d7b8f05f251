import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { rootCertificates } from "node:tls";

/** The subject's common name of every session's authority. */
export const authorityName = "Ambit session authority";

/** Where systems keep all authorities in one file: Debian and Alpine, Fedora, others. */
const bundlePaths = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/cert.pem",
];

/** The authorities that this host's programs trust, in PEM; Node's own if the host has none. */
export async function systemBundle(): Promise<string> {
  for (const path of bundlePaths) {
    const text = await readFile(path, "utf8").catch(() => "");
    if (text.includes("BEGIN CERTIFICATE")) return text.endsWith("\n") ? text : `${text}\n`;
  }
  return `${rootCertificates.join("\n")}\n`;
}

/**
 * The name by which OpenSSL finds a session's authority in a folder of certificates: the hash of its subject
 * (`X509_NAME_hash`), which is SHA-1 over the canonical encoding, of which it takes four bytes, the lowest first.
 */
export function hashedName(): string {
  const text = Buffer.from(authorityName.toLowerCase());
  const wrap = (tag: number, content: Buffer) => Buffer.concat([Buffer.from([tag, content.length]), content]);
  const commonName = Buffer.from([0x06, 0x03, 0x55, 0x04, 0x03]);
  const canonical = wrap(0x31, wrap(0x30, Buffer.concat([commonName, wrap(0x0c, text)])));
  const digest = createHash("sha1").update(canonical).digest();
  return `${digest.readUInt32LE(0).toString(16).padStart(8, "0")}.0`;
}
