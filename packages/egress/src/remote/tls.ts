import type { ConnectionOptions, TlsOptions } from "node:tls";

/** Bytes of a session's secret. */
export const secretBytes = 32;

const identity = "ambit";

/**
 * A connection between a sandbox's relay and its gate. Both ends prove that they know the session's secret, a pre-shared key
 * (RFC 8446), which needs no certificate; a client without it gets an alert. Recorded traffic can't be decrypted later
 * (`psk_dhe_ke`).
 */
const both = {
  minVersion: "TLSv1.3",
  ciphers: "TLS_AES_128_GCM_SHA256:PSK",
  allowHalfOpen: true,
} as const;

export const gateTls = (secret: Buffer): TlsOptions => ({
  ...both,
  pskCallback: (_socket, name) => (name === identity ? secret : null),
});

export const relayTls = (secret: Buffer): ConnectionOptions => ({
  ...both,
  pskCallback: () => ({ psk: secret, identity }),
  // The gate has no name: it is the one that knows the secret.
  checkServerIdentity: () => undefined,
});
