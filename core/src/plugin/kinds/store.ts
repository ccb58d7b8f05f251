import type { Log } from "../scope.js";

/**
 * Keeps runs beyond the connection and the process. A store doesn't act in runs, so it claims nothing and isn't planned.
 *
 * @template Opened a `Store` of `@ambit/durable/store`, which checks that it is one.
 */
export interface StoreBackend<Opened = unknown> {
  /** The store's name: `sqlite`, `postgres`. */
  readonly name: string;
  /**
   * Opens the store. Migrates an older schema once, under a lock that other replicas wait for.
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
  /** The backend's name: `folder`, `s3`. */
  readonly name: string;
  /**
   * @param options `temporary`: the files are apart from those of other processes, and deleted on close.
   * @throws Error if the place can't be used
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
  /** How many times the session's user has granted its budget again. */
  readonly granted: number;
}

export interface Backlog {
  readonly queuedRuns: number;
  /** The size of the queued runs' stored requests. */
  readonly queuedBytes: number;
  readonly pendingDeliveries: number;
  readonly failedDeliveries: number;
}
