import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { rootCertificates } from "node:tls";
import type { TrustFiles } from "./environment.js";

/** The subject's common name of every session's authority. */
export const authorityName = "Ambit session authority";

/** Where systems keep all authorities in one file: Debian and Alpine, Fedora, others. */
const bundlePaths = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/cert.pem",
];

/** The file with the authorities that this host's programs trust, and its content; undefined if there is none. */
async function readSystemBundle(): Promise<{ readonly path: string; readonly text: string } | undefined> {
  for (const path of bundlePaths) {
    const text = await readFile(path, "utf8").catch(() => "");
    if (text.includes("BEGIN CERTIFICATE")) return { path, text: text.endsWith("\n") ? text : `${text}\n` };
  }
  return undefined;
}

/** The authorities that this host's programs trust, in PEM; Node's own if the host has none. */
export async function systemBundle(): Promise<string> {
  return (await readSystemBundle())?.text ?? `${rootCertificates.join("\n")}\n`;
}

/**
 * The same as a file of this host, for programs that see the host's `/etc/ssl` or `/etc/pki`. Programs such as Node, npm and
 * Python's requests bring authorities of their own, and trust a company's in the host's store only by `trustVariables`.
 */
export async function systemTrust(): Promise<TrustFiles | undefined> {
  const bundle = (await readSystemBundle())?.path;
  return bundle === undefined ? undefined : { authority: bundle, bundle };
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
