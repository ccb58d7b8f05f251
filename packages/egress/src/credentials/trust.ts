/** How the programs of a sandbox come to trust authorities: on this host, and in an image. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { rootCertificates } from "node:tls";
import { type Command, codeOf, SandboxFailed } from "@ambit/core/plugin";

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

/**
 * The store of Debian, Alpine and others: one file with all authorities, and one file per authority with its hashed
 * name.
 */
export const imageStore = "/etc/ssl/certs";

const imageTrustScript = `set -eu; umask 022
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
  return ["/bin/sh", "-c", imageTrustScript, "sh", authority, host, bundle, hashedName()];
}

/** A session's certificate authority, and what makes programs inside use it. */
export interface SessionTrust {
  /** The authority's certificate in PEM, which is added to the trust stores inside. */
  readonly authority: string;
  /**
   * Variables for a process inside: those that make it trust the authority; for the agent also those that make git send
   * placeholders.
   *
   * @param given the process's own variables, which aren't changed.
   */
  environment(
    role: "agent" | "tool",
    files: TrustFiles,
    given: Readonly<Record<string, string>>,
  ): Readonly<Record<string, string>>;
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
  /** What the session's credentials need. Undefined: it has none. */
  readonly broker: SessionTrust | undefined;
  /** The deployer's authorities in PEM, which programs inside trust besides the image's. */
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
