import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { offerTitle, PluginBrokeContract, StoreFailed } from "@ambit/core";
import type { BlobsBackend } from "@ambit/core/plugin";

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
  /** The content, for one reader. Nothing is open before it is read. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** @throws TypeError for a name that could lead elsewhere */
export function requireBlobName(name: string): string {
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name) || name === "owner")
    throw new TypeError(`'${name}' can't be the name of a blob`);
  return name;
}

const methods = ["put", "get", "files", "deleteFile", "owners", "delete", "close"] as const;

/** What a plugin opened, checked. @throws PluginBrokeContract for something that isn't one */
export function openedBlobs(backend: Pick<BlobsBackend, "name">, opened: unknown): Blobs {
  if (isBlobs(opened)) return opened;
  const needed = `an object with ${methods.join(", ")}`;
  throw new PluginBrokeContract(
    `${offerTitle(backend)} returned what it must not from open(): it must be ${needed}.`,
  );
}

function isBlobs(opened: unknown): opened is Blobs {
  if (typeof opened !== "object" || opened === null) return false;
  return methods.every((method) => typeof Reflect.get(opened, method) === "function");
}

/**
 * A file at rest: the mark, the key's name, a salt, then chunks of 64 KiB, each AES-256-GCM with its own tag. The construction is
 * STREAM (Hoang, Reyhanitabar, Rogaway, Vizár 2015), with the nonces of age: eleven bytes count the chunks, the last one is 1 for
 * the final chunk. So a file can't be cut, and its chunks can't be exchanged. Each file has a key of its own, derived from its
 * salt, its owner and its name: one that is put in another's place can't be opened.
 */
const mark = Buffer.from("AmbitSealed1");
const sizes = { keyName: 8, salt: 32, key: 32, tag: 16, chunk: 65_536 } as const;
const headerBytes = mark.length + sizes.keyName + sizes.salt;
const sealedChunk = sizes.chunk + sizes.tag;

/** Names of one file, which is opened under the same names as it was sealed. */
interface SealedName {
  readonly owner: string;
  readonly name: string;
}

/** Encrypts files with the newest key, and reads those of earlier ones. */
export class FileSealing {
  readonly #newest: DerivedKey;
  readonly #keys: ReadonlyMap<string, DerivedKey>;

  /** @param earlier only read with */
  constructor(newest: KeyObject, earlier: readonly KeyObject[] = []) {
    this.#newest = derivedFrom(newest);
    const all = [...earlier.map(derivedFrom), this.#newest];
    this.#keys = new Map(all.map((key) => [key.name.toString("hex"), key]));
  }

  async *seal(content: AsyncIterable<Uint8Array>, file: SealedName): AsyncGenerator<Buffer, void, undefined> {
    const salt = randomBytes(sizes.salt);
    const key = fileKey(this.#newest, salt, file);
    yield Buffer.concat([mark, this.#newest.name, salt]);
    let chunk = 0;
    for await (const { bytes, isLast } of inPieces(content, sizes.chunk)) {
      const cipher = createCipheriv("aes-256-gcm", key, nonceOf(chunk, isLast));
      yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
      chunk += 1;
    }
  }

  /** A chunk leaves once it is authenticated. @throws StoreFailed for a file that was changed, cut or put elsewhere, or is too short */
  async *open(sealed: AsyncIterable<Uint8Array>, file: SealedName): AsyncGenerator<Buffer, void, undefined> {
    let key: Buffer | undefined;
    let chunk = 0;
    for await (const { bytes, isLast } of inPieces(sealed, sealedChunk, headerBytes)) {
      if (key === undefined) {
        key = this.#keyIn(bytes, file);
        continue;
      }
      yield opened(bytes, key, nonceOf(chunk, isLast));
      chunk += 1;
    }
    if (chunk === 0) throw damaged("it has no content");
  }

  #keyIn(header: Buffer, file: SealedName): Buffer {
    if (header.length < headerBytes || !header.subarray(0, mark.length).equals(mark)) {
      const message =
        "A kept file isn't encrypted: it was kept before workspace.encrypt was turned on, or it was replaced. Delete its run, or turn workspace.encrypt off to read it.";
      throw new StoreFailed(message, { retryable: false });
    }
    const name = header.subarray(mark.length, mark.length + sizes.keyName);
    const key = this.#keys.get(name.toString("hex"));
    if (key === undefined) {
      const message =
        "A kept file was encrypted with another key: all replicas need the same interactions.keyFile, and after a change the earlier key must be listed in workspace.earlierKeyFiles.";
      throw new StoreFailed(message, { retryable: false });
    }
    return fileKey(key, header.subarray(mark.length + sizes.keyName), file);
  }
}

/** Whether content begins as a sealed file does: to say what is wrong where it is read as it is. */
export function looksSealed(begin: string): boolean {
  return begin.startsWith(mark.toString());
}

/** Bytes of what a sealed file holds; 0 for one that is too short to hold anything. Pure. */
function sizeInside(sealedSize: number): number {
  const chunks = Math.ceil((sealedSize - headerBytes) / sealedChunk);
  return Math.max(0, sealedSize - headerBytes - chunks * sizes.tag);
}

interface DerivedKey {
  /** Stands in the header of each file: it tells keys apart, and says nothing of them. */
  readonly name: Buffer;
  readonly secret: Buffer;
}

function derivedFrom(key: KeyObject): DerivedKey {
  const derive = (purpose: string, size: number) =>
    Buffer.from(hkdfSync("sha256", key, "", `ambit ${purpose}`, size));
  return { name: derive("name of the files' key", sizes.keyName), secret: derive("files", sizes.key) };
}

function fileKey({ secret }: DerivedKey, salt: Buffer, { owner, name }: SealedName): Buffer {
  // A digest, since HKDF takes 1,024 bytes of it at most.
  const names = JSON.stringify([owner, name]);
  const bound = Buffer.from(hkdfSync("sha256", names, "", "ambit name of a file", sizes.key));
  return Buffer.from(hkdfSync("sha256", secret, salt, bound, sizes.key));
}

function nonceOf(chunk: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(chunk, 5, 6);
  nonce.writeUInt8(isLast ? 1 : 0, 11);
  return nonce;
}

function opened(sealed: Buffer, key: Buffer, nonce: Buffer): Buffer {
  if (sealed.length < sizes.tag) throw damaged("it was cut");
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: sizes.tag });
  decipher.setAuthTag(sealed.subarray(sealed.length - sizes.tag));
  const content = decipher.update(sealed.subarray(0, sealed.length - sizes.tag));
  try {
    decipher.final();
  } catch (cause) {
    throw damaged("it was changed or cut since", cause);
  }
  return content;
}

function damaged(what: string, cause?: unknown): StoreFailed {
  const message = `A kept file can't be decrypted: ${what}. Restore it from a backup, or delete its run.`;
  return new StoreFailed(message, { cause, retryable: false });
}

/** Content in pieces of one size; the last one is shorter, or empty where there is no other. @param first size of the first piece */
async function* inPieces(
  content: AsyncIterable<Uint8Array>,
  size: number,
  first = size,
): AsyncGenerator<{ readonly bytes: Buffer; readonly isLast: boolean }, void, undefined> {
  let held: Uint8Array[] = [];
  let length = 0;
  let wanted = first;
  for await (const bytes of content) {
    held.push(bytes);
    length += bytes.length;
    if (length <= wanted) continue;
    const all = Buffer.concat(held, length);
    let at = 0;
    // A piece that is just full may be the last.
    for (; all.length - at > wanted; wanted = size) {
      yield { bytes: all.subarray(at, at + wanted), isLast: false };
      at += wanted;
    }
    held = [all.subarray(at)];
    length -= at;
  }
  yield { bytes: Buffer.concat(held, length), isLast: true };
}

/** The same place, with every file encrypted before it gets there. */
export function sealedBlobs(blobs: Blobs, sealing: FileSealing): Blobs {
  return {
    put: (owner, name, content) => blobs.put(owner, name, sealing.seal(content, { owner, name })),
    get: async (owner, name) => {
      const sealed = await blobs.get(owner, name);
      return (
        sealed && { size: sizeInside(sealed.size), content: sealing.open(sealed.content, { owner, name }) }
      );
    },
    files: (owner) => blobs.files(owner),
    deleteFile: (owner, name) => blobs.deleteFile(owner, name),
    owners: (before) => blobs.owners(before),
    delete: (owner) => blobs.delete(owner),
    close: () => blobs.close(),
  };
}
