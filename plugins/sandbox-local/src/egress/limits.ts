/** Bounds of one session's proxy. Times in milliseconds. */
export interface EgressLimits {
  /** Client connections at once; one more is answered 503. */
  readonly connections: number;
  /** From a connection's start to a complete greeting, and from a tunnel's first byte to a complete first flight. */
  readonly handshakeMs: number;
  readonly lookupMs: number;
  /** For each address that is tried. */
  readonly connectMs: number;
  /** Without a byte in either direction. */
  readonly idleMs: number;
  /** The same, once one side has said that it sends no more. */
  readonly halfClosedIdleMs: number;
  /** A request's or a response's header, in bytes. */
  readonly headerBytes: number;
}

export const defaultLimits: EgressLimits = {
  connections: 512,
  handshakeMs: 30_000,
  lookupMs: 10_000,
  connectMs: 10_000,
  idleMs: 15 * 60_000,
  halfClosedIdleMs: 60_000,
  headerBytes: 32 * 1024,
};
