const lineFeed = 0x0a;
/** Bytes of memory that are kept between two lines. */
const keptBytes = 64 * 1024;

export interface LineSplitterOptions {
  /** Bytes of a line, without its line feed. Default: any number. */
  readonly maxBytes?: number;
  /** The error for a longer line, thrown as soon as it is too long. Default: such a line is left out. */
  readonly tooLong?: () => Error;
  /** The text in place of a line that is left out, by the number of its characters. Default: none. */
  readonly standIn?: (characters: number) => string;
}

/**
 * Splits a stream of UTF-8 at line feeds, however it is cut into pieces. Each byte is searched and copied a bounded number of
 * times, however small the pieces are, and no piece is kept.
 */
export class LineSplitter {
  readonly #options: LineSplitterOptions;
  readonly #maxBytes: number;
  #open = Buffer.alloc(0);
  #length = 0;
  #characters = 0;
  #isLeftOut = false;

  constructor(options: LineSplitterOptions = {}) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
  }

  /** Characters of the line that has no end yet. */
  get openCharacters(): number {
    return this.#characters;
  }

  /** The lines that this piece completes, without their line feeds. @throws what `tooLong` returns */
  *push(piece: Uint8Array): Generator<string, void, undefined> {
    let start = 0;
    for (let end = piece.indexOf(lineFeed); end >= 0; end = piece.indexOf(lineFeed, start)) {
      const part = piece.subarray(start, end);
      start = end + 1;
      if (this.#isBetweenLines && part.length <= this.#maxBytes) {
        yield Buffer.from(part.buffer, part.byteOffset, part.length).toString("utf8");
        continue;
      }
      this.#append(part);
      const line = this.#take();
      if (line !== undefined) yield line;
    }
    this.#append(piece.subarray(start));
  }

  /** The last line of a stream that ends without a line feed; undefined if there is none. */
  end(): string | undefined {
    return this.#isBetweenLines ? undefined : this.#take();
  }

  get #isBetweenLines(): boolean {
    return this.#length === 0 && !this.#isLeftOut;
  }

  #append(part: Uint8Array): void {
    this.#characters += charactersIn(part);
    const length = this.#length + part.length;
    if (length > this.#maxBytes) {
      const { tooLong } = this.#options;
      if (tooLong !== undefined) throw tooLong();
      this.#isLeftOut = true;
    }
    if (this.#isLeftOut) return;
    if (length > this.#open.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * length, this.#maxBytes));
      this.#open.copy(larger, 0, 0, this.#length);
      this.#open = larger;
    }
    this.#open.set(part, this.#length);
    this.#length = length;
  }

  #take(): string | undefined {
    const line = this.#isLeftOut
      ? this.#options.standIn?.(this.#characters)
      : this.#open.toString("utf8", 0, this.#length);
    this.#length = 0;
    this.#characters = 0;
    this.#isLeftOut = false;
    // A long line is rare: its memory isn't held until the next one.
    if (this.#open.length > keptBytes) this.#open = Buffer.alloc(0);
    return line;
  }
}

/** UTF-16 characters of UTF-8, which may begin or end within a character: each counts where it begins. */
function charactersIn(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) count += byte >= 0xf0 ? 2 : 1;
  return count;
}
