import { readSync } from "node:fs";
import { waitForOneMs, writeAll } from "../answers.js";
import { maxLineBytes, SnapshotError } from "./format.js";

const stdin = 0;

/** Stdin, as lines and bytes. Not a `LineSplitter`: this program reads bytes between its lines, and waits for its input. */
export class Input {
  readonly #buffer = Buffer.allocUnsafe(1_048_576);
  #at = 0;
  #end = 0;

  /** The next line, without its line break. */
  line(): string {
    for (;;) {
      const end = this.#buffer.subarray(0, this.#end).indexOf(10, this.#at);
      if (end !== -1) {
        const line = this.#buffer.toString("utf8", this.#at, end);
        this.#at = end + 1;
        return line;
      }
      if (this.#end - this.#at > maxLineBytes)
        throw new SnapshotError("damaged", "it has a line that is too long");
      this.#more();
    }
  }

  /** The next bytes, in pieces that are valid until the next call. */
  bytes(count: number, use: (piece: Buffer) => void): void {
    for (let left = count; left > 0; ) {
      if (this.#at === this.#end) this.#more();
      const piece = this.#buffer.subarray(this.#at, Math.min(this.#end, this.#at + left));
      this.#at += piece.length;
      left -= piece.length;
      use(piece);
    }
  }

  /** Reads at least one byte more, after what isn't used yet. */
  #more(): void {
    this.#buffer.copyWithin(0, this.#at, this.#end);
    this.#end -= this.#at;
    this.#at = 0;
    const read = readSome(this.#buffer.subarray(this.#end));
    if (read === 0) throw new SnapshotError("damaged", "it ends early");
    this.#end += read;
  }
}

function readSome(into: Buffer): number {
  for (;;) {
    try {
      return readSync(stdin, into, 0, into.length, null);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw error;
      waitForOneMs();
    }
  }
}

/** Stdout, written in large pieces: a snapshot has thousands of small files. */
export class Output {
  readonly #buffer = Buffer.allocUnsafe(1_048_576);
  #used = 0;

  write(bytes: Buffer): undefined {
    if (bytes.length > this.#buffer.length - this.#used) this.flush();
    if (bytes.length > this.#buffer.length) return writeAll(bytes);
    bytes.copy(this.#buffer, this.#used);
    this.#used += bytes.length;
  }

  flush(): undefined {
    writeAll(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}
