import type { ConnectionOptions, TlsOptions } from "node:tls";
import { LineSplitter, type NetworkBoundary, type UpstreamProxy } from "@ambit/core/plugin";
import { z } from "zod";
import { type BoundCredential, bindAgain } from "../credentials/bound.js";
import type { CredentialState, HiddenValue } from "../credentials/values.js";

/** Bytes of one message to the gate. One with the authorities of a host has half a megabyte. */
export const maxToGateBytes = 16 * 1024 * 1024;
/** Bytes of any other message. */
export const maxMessageBytes = 64 * 1024;

/** Messages in lines of JSON, in pieces of any size. */
export class MessageReader {
  readonly #lines: LineSplitter;
  readonly #take: (message: unknown) => void;

  /** @param maxBytes of one line. */
  constructor(maxBytes: number, take: (message: unknown) => void) {
    this.#lines = new LineSplitter({
      maxBytes,
      tooLong: () => new Error(`a message has more than ${maxBytes} bytes`),
    });
    this.#take = take;
  }

  /** @throws Error for a line that is too long or isn't JSON; what `take` throws */
  push(bytes: Uint8Array): void {
    for (const line of this.#lines.push(bytes)) this.#take(JSON.parse(line));
  }
}

export const lineOf = (message: object): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);

/** A session's credentials, as they are sent. The authority's key isn't among it. */
export interface SentCredentials {
  readonly credentials: readonly Omit<BoundCredential, "endpoints">[];
  readonly hidden: readonly (readonly HiddenValue[])[];
}

export const sentCredentials = ({ credentials, hidden }: CredentialState): SentCredentials => ({
  credentials: credentials.map(({ endpoints: _, ...credential }) => credential),
  hidden: hidden.map((values) =>
    values.map(({ value, secret, placeholder }) => ({ value, secret, placeholder })),
  ),
});

export const receivedCredentials = ({ credentials, hidden }: SentCredentials): CredentialState => ({
  credentials: credentials.map(bindAgain),
  hidden,
});

/** What a gate serves. */
export interface Served {
  readonly policy: NetworkBoundary;
  /** Whether the runner resolves names. Else the gate's own resolver does. */
  readonly hasLookup: boolean;
  /** The gate connects through it, from where it is. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /** Addresses of the runner's host, which no name leads to by accident. */
  readonly runnerAddresses: readonly string[];
  readonly credentials?: SentCredentials & {
    /** In PEM: the authorities that the runner trusts. */
    readonly trusted: readonly string[];
  };
}

/** Messages of the runner. */
export type ToGate =
  | {
      /** The first one. */
      readonly begin: {
        /** Hexadecimal. */
        readonly secret: string;
        readonly port: number;
        /** Milliseconds without a message after which the gate ends. */
        readonly silenceMs: number;
      };
    }
  | { readonly serve: Served }
  | { readonly credentials: SentCredentials }
  | { readonly answer: number; readonly value: unknown }
  | { readonly answer: number; readonly failure: string }
  | { readonly ping: true };

const protocols = ["http", "connect", "socks5", "socks4", "unknown"] as const;
const name = z.string().max(1_000);

/** What a gate asks its runner. */
const questionSchema = z.union([
  /** Whether the session has a run. For each connection: a runner that is gone admits none. */
  z.strictObject({ isUnclaimed: z.literal(true) }),
  z.strictObject({ lookup: name }),
  z.strictObject({ ready: z.array(name).max(1_000) }),
  z.strictObject({ certificate: name }),
]);
export type Question = z.output<typeof questionSchema>;

/** Messages of the gate. It serves programs of a run, so nothing that it says is trusted. */
export const fromGateSchema = z.union([
  z.strictObject({ pong: z.literal(true) }),
  z.strictObject({
    decision: z.strictObject({
      target: z.strictObject({ host: z.string().max(1_000), port: z.int().min(0).max(65_535) }),
      allowed: z.boolean(),
      reason: z.string().max(8_000),
      protocol: z.enum(protocols),
      address: z.string().max(100).optional(),
      failure: z.string().max(300).optional(),
      isReported: z.literal(true).optional(),
    }),
  }),
  z.strictObject({ ask: z.int().nonnegative(), question: questionSchema }),
  z.strictObject({
    listening: z.strictObject({
      node: z.string().max(100),
      /** Where others reach it. */
      addresses: z.array(z.string().max(100)).max(100),
    }),
  }),
  z.strictObject({ serving: z.literal(true) }),
  z.strictObject({ fault: z.string().max(2_000) }),
  /** Why it ends. */
  z.strictObject({ ended: z.string().max(2_000) }),
]);
export type FromGate = z.output<typeof fromGateSchema>;

/** Answers to the gate's questions. The runner wrote them. */
export const answers = {
  isUnclaimed: z.boolean(),
  lookup: z.array(z.string()),
  ready: z.string().nullable(),
  certificate: z.object({ key: z.string(), certificate: z.string() }),
};

/** The first message to a relay. Each later one only says that its runner is there, and gets an answer. */
export interface RelaySettings {
  /** Of the Unix socket that it serves, which only root may open. */
  readonly path: string;
  readonly gate: { readonly host: string; readonly port: number };
  /** Hexadecimal. */
  readonly secret: string;
  /** Milliseconds for the gate to be reached: the network may open the way late. */
  readonly settleMs: number;
  /** Milliseconds without a message after which each end gives the other up. */
  readonly silenceMs: number;
  /** The user that it becomes once it listens. */
  readonly user: number;
}

export const fromRelaySchema = z.union([
  z.strictObject({ ready: z.strictObject({ afterMs: z.number().nonnegative() }) }),
  z.strictObject({ pong: z.literal(true) }),
  z.strictObject({ failed: z.string().max(2_000) }),
]);

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
