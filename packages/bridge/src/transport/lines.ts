import { StringDecoder } from "node:string_decoder";

/** Splits a stream into lines, however it is chunked. A line longer than `max` characters is dropped. */
export class Lines {
  readonly #decoder = new StringDecoder("utf8");
  readonly #max: number;
  #rest = "";

  constructor(max: number) {
    this.#max = max;
  }

  /** The lines that this piece completes, without their ends. */
  push(bytes: Uint8Array): readonly string[] {
    const text = this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    // Searches only the new piece, since a long line arrives in many pieces.
    const [first = "", ...others] = text.split("\n");
    const rest = others.pop();
    const lines = rest === undefined ? [] : [this.#rest + first, ...others];
    const open = rest ?? this.#rest + first;
    // A longer line isn't ours: its beginning is dropped, and its remainder is noise.
    this.#rest = open.length > this.#max ? "" : open;
    return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  }
}
