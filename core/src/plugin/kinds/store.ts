import type { Log } from "../scope.js";

/**
 * Keeps runs beyond the connection and the process. It doesn't act in runs, so it claims nothing and isn't planned.
 *
 * @template Opened a `Store` of `@ambit/durable/store`, which checks it.
 */
export interface StoreBackend<Opened = unknown> {
  /** `sqlite`, `postgres`. */
  readonly name: string;
  /**
   * Opens it, and brings an older schema up to date, once, under a lock that other replicas wait for.
   * @throws Error for a schema that is newer than this version, or a database that can't be reached.
   */
  open(options: { readonly log: Log }): Promise<Opened>;
}

/**
 * Keeps the files of runs' outputs. Like a store, it doesn't act in runs.
 *
 * @template Opened `Blobs` of `@ambit/workspace/blobs`.
 */
export interface BlobsBackend<Opened = unknown> {
  /** `folder`, `s3`. */
  readonly name: string;
  /**
   * @param options `temporary`: apart from what other processes keep, and deleted when it is closed.
   * @throws Error when it can't be used
   */
  open(options: { readonly log: Log; readonly temporary: boolean }): Promise<Opened>;
}

/** A session's usage of models: requests, tokens, money. */
export interface SessionUse {
  readonly requests: number;
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** US dollars. */
  readonly usd: number;
  /** Whether all of it had a price. */
  readonly isPriced: boolean;
  /** The number of times that its user has granted its budget again. */
  readonly granted: number;
}

export interface Backlog {
  readonly queuedRuns: number;
  /** Bytes of their requests, as they are stored. */
  readonly queuedBytes: number;
  readonly pendingDeliveries: number;
  readonly failedDeliveries: number;
}
