import { KeptPieces } from "@ambit/core/plugin";

/** Reads a stream as lines and bytes. The sender isn't trusted: a line has a limit. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#source = stream[Symbol.asyncIterator]();
  }

  /** The next line without its line break. @throws RangeError for a longer one, and at the stream's end */
  async line(maxBytes: number): Promise<string> {
    const parts = new KeptPieces();
    for (let length = 0; ; ) {
      const end = this.#buffer.indexOf(10);
      const part = end === -1 ? this.#buffer : this.#buffer.subarray(0, end);
      length += part.length;
      if (length > maxBytes) throw new RangeError(`a line is longer than ${maxBytes} bytes`);
      parts.push(part);
      this.#buffer = end === -1 ? Buffer.alloc(0) : this.#buffer.subarray(end + 1);
      if (end !== -1) return parts.take().toString("utf8");
      await this.#more();
    }
  }

  /** The next bytes, in pieces. @throws RangeError at the stream's end */
  async *bytes(count: number): AsyncGenerator<Buffer, void, undefined> {
    for (let left = count; left > 0; ) {
      if (this.#buffer.length === 0) await this.#more();
      const piece = this.#buffer.subarray(0, left);
      this.#buffer = this.#buffer.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** A file's content, as the program inside sends it. @throws RangeError at the stream's end, or for more bytes */
  async *chunks(maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
    for (let left = maxBytes; ; ) {
      const size = Number(await this.line(16));
      if (!Number.isSafeInteger(size) || size < 0) throw new RangeError("a chunk without a size");
      if (size === 0) return;
      left -= size;
      if (left < 0) throw new RangeError("more bytes than were asked for");
      yield* this.bytes(size);
    }
  }

  /** All that is left, in pieces. */
  async *remainder(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#buffer.length > 0) yield this.#buffer;
    yield* { [Symbol.asyncIterator]: () => this.#source };
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#source.next();
    if (done === true) throw new RangeError("it ended early");
    this.#buffer = Buffer.from(value.buffer, value.byteOffset, value.length);
  }
}
