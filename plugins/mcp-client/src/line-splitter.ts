const lineFeed = 0x0a;
/** Memory that is kept between two lines. */
const keptBytes = 64 * 1024;

/** Splits bytes at line feeds. Each byte is searched and copied a bounded number of times, however small the pieces are. */
export class LineSplitter {
  #open = Buffer.alloc(0);
  #length = 0;

  /**
   * @param maxBytes of a line, without its line feed.
   * @param tooLong the error for a longer one.
   */
  constructor(
    readonly maxBytes: number,
    readonly tooLong: () => Error,
  ) {}

  /**
   * The lines that this piece completes, as text.
   *
   * @throws what `tooLong` returns.
   */
  *push(piece: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, start)) {
      this.#append(piece.subarray(start, end));
      const line = this.#open.toString("utf8", 0, this.#length);
      this.#length = 0;
      // A long line is rare: its memory isn't held until the next one.
      if (this.#open.length > keptBytes) this.#open = Buffer.alloc(0);
      start = end + 1;
      yield line;
    }
    this.#append(piece.subarray(start));
  }

  #append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.maxBytes) throw this.tooLong();
    if (length > this.#open.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * length, this.maxBytes));
      this.#open.copy(larger, 0, 0, this.#length);
      this.#open = larger;
    }
    this.#open.set(bytes, this.#length);
    this.#length = length;
  }
}
