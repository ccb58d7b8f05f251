import type { ServerState } from "./answers.js";

/** What the thread of the health listener starts with. */
export interface HealthThreadSettings {
  readonly host: string;
  readonly port: number;
  /** Open connections: one more, and the oldest ends. */
  readonly maxConnections: number;
  /** Milliseconds without a turn of the main event loop, after which it counts as stalled. */
  readonly stallTimeoutMs: number;
  /** Of a listener on loopback: further names under which it may be called. Undefined: any. */
  readonly allowedHosts: readonly string[] | undefined;
  /** One number: when the main event loop last turned, in nanoseconds of `process.hrtime`. */
  readonly lastTurn: BigInt64Array<SharedArrayBuffer>;
  readonly state: ServerState;
}

/** From the thread: it listens, or can't. */
export type HealthThreadReport = { readonly port: number } | { readonly error: string };
