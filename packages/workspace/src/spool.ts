import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

/** A content in a spool. */
export interface Spooled {
  readonly at: number;
  readonly size: number;
  /** Digest of the content, in hex. */
  readonly sha256: string;
}

const chunkBytes = 262_144;

/** Contents of one run on their way, in a file without a name: nothing of it is left when this process ends, however it ends. */
export class Spool {
  readonly #handle: FileHandle;
  #end = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** @param folder for the file, created if it doesn't exist. */
  static async open(folder: string): Promise<Spool> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, `spool-${randomBytes(8).toString("hex")}`);
    const handle = await open(path, "wx+", 0o600);
    try {
      await rm(path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new Spool(handle);
  }

  /** Bytes so far. */
  get size(): number {
    return this.#end;
  }

  /** Adds a content: one at a time. */
  async add(content: AsyncIterable<Uint8Array>): Promise<Spooled> {
    const hash = createHash("sha256");
    const at = this.#end;
    for await (const bytes of content) {
      hash.update(bytes);
      await this.#write(bytes);
    }
    return { at, size: this.#end - at, sha256: hash.digest("hex") };
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, this.#end);
      done += bytesWritten;
      this.#end += bytesWritten;
    }
  }

  async *read({ at, size }: Pick<Spooled, "at" | "size">): AsyncGenerator<Buffer, void, undefined> {
    for (let done = 0; done < size; ) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size - done));
      const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, at + done);
      if (bytesRead === 0) throw new Error("a spool is shorter than what was written to it");
      done += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** All bytes of a content that fits into memory. */
  async whole(content: Spooled): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.read(content)) parts.push(part);
    return Buffer.concat(parts, content.size);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
