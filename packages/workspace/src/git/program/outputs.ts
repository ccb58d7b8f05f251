import { KeptPieces } from "@ambit/core/plugin";

/** Bytes that a command printed beyond what it may. */
export class TooMuchOutput extends Error {}

/** What commands print one after the other, with a marker between two of them. */
export class Outputs {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #marker: Buffer;
  #held: Buffer = Buffer.alloc(0);

  /** @param marker secret: whoever can choose what the commands print must not know it */
  constructor(stream: AsyncIterable<Uint8Array>, marker: string) {
    this.#source = stream[Symbol.asyncIterator]();
    this.#marker = Buffer.from(marker);
  }

  /** @returns what the next command prints, and whether another one was started after it @throws TooMuchOutput */
  async next(maxBytes: number): Promise<{ readonly output: Buffer; readonly isFollowed: boolean }> {
    const parts = new KeptPieces();
    let bytes = 0;
    const add = (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxBytes) throw new TooMuchOutput();
      parts.push(part);
    };
    for (;;) {
      const end = this.#held.indexOf(this.#marker);
      if (end !== -1) {
        add(this.#held.subarray(0, end));
        this.#held = this.#held.subarray(end + this.#marker.length);
        return { output: parts.take(), isFollowed: true };
      }
      // The marker may have begun at the end.
      const sure = Math.max(0, this.#held.length - this.#marker.length + 1);
      add(this.#held.subarray(0, sure));
      this.#held = this.#held.subarray(sure);
      const { value, done } = await this.#source.next();
      if (done === true) {
        add(this.#held);
        return { output: parts.take(), isFollowed: false };
      }
      this.#held = Buffer.concat([this.#held, value]);
    }
  }

  /** What the last command prints, while it prints it. */
  async *rest(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#held.length > 0) yield this.#held;
    for (;;) {
      const { value, done } = await this.#source.next();
      if (done === true) return;
      yield value;
    }
  }

  /** Reads no more. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
