import type { ConnectionOptions, TlsOptions } from "node:tls";

/** Bytes of a session's secret. */
export const secretBytes = 32;

const identity = "ambit";

/**
 * A connection between a sandbox's relay and its gate: both ends prove that they know the session's secret (a pre-shared key,
 * RFC 8446), for which there is no certificate to make, and nobody who reads along can decrypt it later (`psk_dhe_ke`). Whoever
 * doesn't know it gets an alert.
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
