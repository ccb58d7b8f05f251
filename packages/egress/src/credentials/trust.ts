import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { rootCertificates } from "node:tls";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

/** The trust stores' paths, as seen inside. */
export interface TrustFiles {
  /** What is trusted besides a program's own authorities, for variables that extend a store. */
  readonly authority: string;
  /** All authorities: the system's, and the session's if it has one. For variables that replace a store. */
  readonly bundle: string;
}

/** Variables that make programs trust what is in these files. */
export function trustVariables({ authority, bundle }: TrustFiles): Readonly<Record<string, string>> {
  return {
    // OpenSSL, Go, Python, Bun, codex.
    SSL_CERT_FILE: bundle,
    CURL_CA_BUNDLE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    PIP_CERT: bundle,
    GIT_SSL_CAINFO: bundle,
    npm_config_cafile: bundle,
    CARGO_HTTP_CAINFO: bundle,
    AWS_CA_BUNDLE: bundle,
    CODEX_CA_CERTIFICATE: bundle,
    NODE_EXTRA_CA_CERTS: authority,
    DENO_CERT: authority,
  };
}

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

/** The content of a backend's `trustedAuthorities`. @throws SandboxFailed for a file that can't be read. */
export function readAuthorities(paths: readonly string[], plugin: string): Promise<readonly string[]> {
  return Promise.all(paths.map((path) => authorityIn(path, plugin)));
}

async function authorityIn(path: string, plugin: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const fix = "correct the path, or let the runner read the file";
    const message = `${plugin}'s trustedAuthorities names ${path}, which can't be read (${codeOf(cause)}): ${fix}`;
    throw new SandboxFailed(message, { cause });
  }
}
