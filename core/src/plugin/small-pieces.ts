/** Bytes below which a piece is copied together with others, and of such pieces together. */
const [small, together] = [2_048, 8_192];

/**
 * Puts small pieces of an input together, for code that keeps an input until it is complete. A piece costs some hundred bytes of
 * memory besides its own, however small it is, and the sender chooses its size: in HTTP, each chunk becomes one.
 */
export class SmallPieces {
  #open: Uint8Array | undefined;
  #length = 0;

  /** @returns what may be kept now, in order; the rest follows later. None of it shares the memory of a small piece. */
  push(piece: Uint8Array): readonly Uint8Array[] {
    if (piece.length >= small) return [...this.end(), piece];
    const full = this.#length + piece.length > together ? this.end() : [];
    // Grows like its input: most inputs are one small piece.
    if (this.#open === undefined || this.#length + piece.length > this.#open.length) {
      const larger = new Uint8Array(Math.min(together, 2 * (this.#length + piece.length)));
      if (this.#open !== undefined) larger.set(this.#open.subarray(0, this.#length));
      this.#open = larger;
    }
    this.#open.set(piece, this.#length);
    this.#length += piece.length;
    return full;
  }

  /** Bytes that follow later. */
  get length(): number {
    return this.#length;
  }

  /** The rest, at the input's end. */
  end(): readonly Uint8Array[] {
    const open = this.#open;
    if (open === undefined || this.#length === 0) return [];
    const rest = open.subarray(0, this.#length);
    this.#open = undefined;
    this.#length = 0;
    return [rest];
  }
}

/** The bytes of an input that is kept until it is complete. */
export class KeptPieces {
  readonly #pieces: Uint8Array[] = [];
  readonly #small = new SmallPieces();

  push(piece: Uint8Array): void {
    this.#pieces.push(...this.#small.push(piece));
  }

  /** All of them. None is kept any more. */
  take(): Buffer {
    return Buffer.concat([...this.#pieces.splice(0), ...this.#small.end()]);
  }
}
