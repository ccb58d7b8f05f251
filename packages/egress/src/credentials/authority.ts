// The library's decorators need this polyfill.
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import * as x509 from "@peculiar/x509";
import { authorityName } from "./trust.js";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** Longer than any session. Begins in the past, since a client's clock may be behind. */
const validMs = 30 * 24 * 3_600_000;
const skewMs = 3_600_000;

/**
 * Issues certificates for the hosts of one session's credentials. Its key can't be exported, and ends with the process.
 */
export class SessionAuthority {
  /** PEM, for the trust stores inside. */
  readonly certificate: string;
  readonly #issuer: x509.X509Certificate;
  readonly #key: webcrypto.CryptoKey;
  readonly #leafKeys: webcrypto.CryptoKeyPair;
  readonly #leafKey: string;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  private constructor(
    issuer: x509.X509Certificate,
    key: webcrypto.CryptoKey,
    leafKeys: webcrypto.CryptoKeyPair,
    leafKey: string,
  ) {
    this.certificate = pem(issuer);
    this.#issuer = issuer;
    this.#key = key;
    this.#leafKeys = leafKeys;
    this.#leafKey = leafKey;
  }

  static async make(): Promise<SessionAuthority> {
    const { subtle } = webcrypto;
    const [keys, leafKeys] = await Promise.all([
      subtle.generateKey(algorithm, false, ["sign", "verify"]),
      subtle.generateKey(algorithm, true, ["sign", "verify"]),
    ]);
    const issuer = await x509.X509CertificateGenerator.createSelfSigned({
      ...lifetime(),
      name: `CN=${authorityName}`,
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    const encoded = await subtle.exportKey("pkcs8", leafKeys.privateKey);
    const leafKey = x509.PemConverter.encode(encoded, "PRIVATE KEY");
    return new SessionAuthority(issuer, keys.privateKey, leafKeys, leafKey);
  }

  /** The certificate and key for a server of this name. Created once per name. */
  contextFor(name: string): Promise<SecureContext> {
    const existing = this.#contexts.get(name);
    if (existing !== undefined) return existing;
    const made = this.#makeContext(name);
    this.#contexts.set(name, made);
    return made;
  }

  async #makeContext(name: string): Promise<SecureContext> {
    const { key, certificate } = await this.certificateFor(name);
    return createSecureContext({ key, cert: certificate, minVersion: "TLSv1.2" });
  }

  /** A server's key and certificate in PEM. All names share one key. */
  async certificateFor(name: string): Promise<{ readonly key: string; readonly certificate: string }> {
    const leaf = await x509.X509CertificateGenerator.create({
      ...lifetime(),
      subject: `CN=${authorityName} leaf`,
      issuer: this.#issuer.subject,
      publicKey: this.#leafKeys.publicKey,
      signingKey: this.#key,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#issuer),
        await x509.SubjectKeyIdentifierExtension.create(this.#leafKeys.publicKey),
      ],
    });
    return { key: this.#leafKey, certificate: pem(leaf) };
  }
}

function lifetime() {
  const now = Date.now();
  return {
    // Positive, as RFC 5280 section 4.1.2.2 requires.
    serialNumber: `01${randomBytes(15).toString("hex")}`,
    notBefore: new Date(now - skewMs),
    notAfter: new Date(now + validMs),
  };
}

/** With the line end that a bundle needs. */
const pem = (certificate: x509.X509Certificate) => `${certificate.toString("pem")}\n`;
