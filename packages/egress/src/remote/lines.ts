/** Bytes of one message to the gate: with the authorities of a host, half a megabyte. */
export const maxToGateBytes = 16 * 1024 * 1024;
/** Bytes of any other message. */
export const maxMessageBytes = 64 * 1024;

/** Messages in lines of JSON, in pieces of any size. */
export class LineReader {
  readonly #maxBytes: number;
  readonly #take: (message: unknown) => void;
  #pieces: Uint8Array[] = [];
  #length = 0;

  /** @param maxBytes of one line. */
  constructor(maxBytes: number, take: (message: unknown) => void) {
    this.#maxBytes = maxBytes;
    this.#take = take;
  }

  /** @throws Error for a line that is too long or isn't JSON; what `take` throws */
  push(bytes: Uint8Array): void {
    let rest = bytes;
    for (let end = rest.indexOf(lineFeed); end >= 0; end = rest.indexOf(lineFeed)) {
      this.#hold(rest.subarray(0, end));
      const line = Buffer.concat(this.#pieces).toString("utf8");
      [this.#pieces, this.#length, rest] = [[], 0, rest.subarray(end + 1)];
      this.#take(JSON.parse(line));
    }
    if (rest.length > 0) this.#hold(rest);
  }

  #hold(piece: Uint8Array): void {
    this.#length += piece.length;
    if (this.#length > this.#maxBytes) throw new Error(`a message has more than ${this.#maxBytes} bytes`);
    // The memory of a pipe's pieces may be used again.
    this.#pieces.push(Uint8Array.from(piece));
  }
}

const lineFeed = 10;

export const lineOf = (message: object): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);
