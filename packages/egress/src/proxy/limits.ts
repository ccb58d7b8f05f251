/** Bounds of one session's proxy. Times in milliseconds. */
export interface EgressLimits {
  /** Concurrent client connections; one more gets 503. */
  readonly connections: number;
  /**
   * For a complete greeting, for a tunnel's complete first flight, and for a complete request header: from the
   * connection's start, and again from the end of each response.
   */
  readonly handshakeMs: number;
  /** For the body of a request to an exposure. */
  readonly bodyMs: number;
  /** Pipelined requests of one connection; one more ends the connection. */
  readonly pipelined: number;
  /** Lookups at once; further ones wait, within `lookupMs`. */
  readonly lookups: number;
  readonly lookupMs: number;
  /** For each address that is tried. */
  readonly connectMs: number;
  /** Without a byte in either direction. */
  readonly idleMs: number;
  /** The same, once one side has half-closed. */
  readonly halfClosedIdleMs: number;
  /** A request's or a response's header, in bytes. */
  readonly headerBytes: number;
}

export const defaultProxyLimits: EgressLimits = {
  connections: 256,
  handshakeMs: 10_000,
  bodyMs: 60_000,
  pipelined: 64,
  lookups: 2,
  lookupMs: 10_000,
  connectMs: 10_000,
  idleMs: 15 * 60_000,
  halfClosedIdleMs: 60_000,
  headerBytes: 32 * 1024,
};
