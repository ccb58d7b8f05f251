/**
 * Keeps files of runs, each run's apart. An open one: every method rejects while it can't be reached. A plugin offers it as
 * its `blobs`.
 */
export interface Blobs {
  /**
   * Writes a file; one of that name is replaced. If the content throws, nothing is kept of it.
   * @param name `[a-z0-9._-]{1,64}`
   */
  put(owner: string, name: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Undefined where there is none. */
  get(owner: string, name: string): Promise<Blob | undefined>;
  /** The owners that have files. */
  owners(): AsyncIterable<BlobOwner>;
  /** Deletes all files of an owner. Succeeds if there are none. */
  delete(owner: string): Promise<void>;
  close(): Promise<void>;
}

export interface BlobOwner {
  readonly owner: string;
  /** When its first file was written, in milliseconds since 1970. */
  readonly since: number;
}

export interface Blob {
  /** Bytes. */
  readonly size: number;
  /** For one reader. */
  readonly content: AsyncIterable<Uint8Array>;
}
