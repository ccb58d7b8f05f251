/**
 * Keeps files, those of each owner apart: an owner is a run, or a snapshot. An open one: every method rejects with
 * `StoreFailed` while it can't be reached. A plugin offers it as its `blobs`.
 */
export interface Blobs {
  /**
   * Writes a file; one of that name is replaced. Readers see the earlier file or the whole new one. If the content throws,
   * nothing is kept of it, and this rejects with what it threw.
   * @param name `[a-z0-9._-]{1,64}`, not `owner`
   * @throws TypeError for another name; StoreFailed
   */
  put(owner: string, name: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Undefined where there is none. @throws StoreFailed, as its content does */
  get(owner: string, name: string): Promise<Blob | undefined>;
  /** The files of an owner, in no order. @throws StoreFailed */
  files(owner: string): AsyncIterable<BlobFile>;
  /** Deletes one file of an owner, who stays. Succeeds if there is none. @throws StoreFailed */
  deleteFile(owner: string, name: string): Promise<void>;
  /** The owners whose first file was written before that time. @param before in milliseconds since 1970 */
  owners(before: number): AsyncIterable<BlobOwner>;
  /** Deletes all files of an owner. Succeeds if there are none. */
  delete(owner: string): Promise<void>;
  close(): Promise<void>;
}

export interface BlobOwner {
  readonly owner: string;
  /** When its first file was written, in milliseconds since 1970. */
  readonly since: number;
}

export interface BlobFile {
  readonly name: string;
  /** When it was written, in milliseconds since 1970. */
  readonly at: number;
}

export interface Blob {
  /** Bytes. */
  readonly size: number;
  /** For one reader. Nothing is open before it is read. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** @throws TypeError for a name that could lead elsewhere */
export function requireBlobName(name: string): string {
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name) || name === "owner")
    throw new TypeError(`'${name}' can't be the name of a blob`);
  return name;
}
