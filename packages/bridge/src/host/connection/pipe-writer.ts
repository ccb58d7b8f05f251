import type { BinaryPipe, Pipe } from "../../platform.js";
import { preamble } from "../../transport/byte-records.js";
import type { PipeSink } from "../../transport/transport.js";

/** Characters in one write of a pipe, which may be a request to a platform's API. */
const maxWriteCharacters = 48 * 1024;
/** Bytes in one write of a binary pipe, for which small pieces are joined. */
const maxWriteBytes = 128 * 1024;

/** Hands to a pipe what a transport sends, one write at a time; what is sent meanwhile is part of the next write. */
export abstract class PipeWriter<Written> implements PipeSink<Written> {
  readonly #failed: (error: unknown) => void;
  #waiting: Written[] = [];
  #isWriting = false;
  /** Written so far, in characters or bytes. */
  written = 0;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  protected abstract writeAll(waiting: readonly Written[]): Promise<void>;

  write(written: Written): void {
    this.#waiting.push(written);
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Together with the rest of this turn of the event loop.
    setImmediate(() => {
      this.#drain().catch((error: unknown) => this.#failed(error));
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const all = this.#waiting;
      this.#waiting = [];
      await this.writeAll(all);
    }
    this.#isWriting = false;
  }
}

/** Writes complete lines. */
export class LineWriter extends PipeWriter<string> {
  readonly #pipe: Pipe;

  constructor(pipe: Pipe, failed: (error: unknown) => void) {
    super(failed);
    this.#pipe = pipe;
  }

  protected override async writeAll(waiting: readonly string[]): Promise<void> {
    const all = waiting.join("");
    for (let start = 0; start < all.length; ) {
      const end = cut(all, start);
      await this.#pipe.write(all.slice(start, end));
      this.written += end - start;
      start = end;
    }
  }
}

/** The end of the last line that fits into a write. A line is shorter than a write. */
function cut(all: string, start: number): number {
  if (all.length - start <= maxWriteCharacters) return all.length;
  const end = all.lastIndexOf("\n", start + maxWriteCharacters - 1) + 1;
  return end > start ? end : all.length;
}

/** Writes bytes, after the preamble. */
export class ByteWriter extends PipeWriter<Uint8Array> {
  readonly #pipe: BinaryPipe;
  /** For joined pieces: new memory for each write costs more than the copy. */
  readonly #joined = Buffer.allocUnsafeSlow(maxWriteBytes);

  constructor(pipe: BinaryPipe, failed: (error: unknown) => void) {
    super(failed);
    this.#pipe = pipe;
    this.write(preamble);
  }

  protected override async writeAll(waiting: readonly Uint8Array[]): Promise<void> {
    let joined: Uint8Array[] = [];
    let length = 0;
    for (const bytes of waiting) {
      if (length + bytes.length > maxWriteBytes) {
        await this.#writeOne(joined);
        [joined, length] = [[], 0];
      }
      joined.push(bytes);
      length += bytes.length;
    }
    await this.#writeOne(joined);
  }

  async #writeOne(pieces: readonly Uint8Array[]): Promise<void> {
    const [first, ...others] = pieces;
    if (first === undefined) return;
    const bytes = others.length === 0 ? first : this.#join(pieces);
    await this.#pipe.write(bytes);
    this.written += bytes.length;
  }

  #join(pieces: readonly Uint8Array[]): Uint8Array {
    let length = 0;
    for (const bytes of pieces) {
      this.#joined.set(bytes, length);
      length += bytes.length;
    }
    return this.#joined.subarray(0, length);
  }
}
