import type { JsonScan } from "../json-scan.js";

/** Finds the JSON in an answer as it passes. */
export interface AnswerReader {
  push(bytes: Buffer): void;
  /** Bytes so far. */
  readonly bytes: number;
  /** Pieces of a streamed answer so far. */
  readonly events: number;
}

/** An answer in one document. */
export class WholeDocument implements AnswerReader {
  readonly events = 0;
  bytes = 0;

  constructor(readonly scan: JsonScan) {}

  push(bytes: Buffer): void {
    this.bytes += bytes.length;
    this.scan.feed(bytes);
  }
}

const lineFeed = 0x0a;
const field = Buffer.from("data:");

/** Server-sent events: one document in each `data:` line (WHATWG HTML, section 9.2). No line is kept. */
export class EventLines implements AnswerReader {
  bytes = 0;
  events = 0;
  /** Bytes of the line's field name that have matched; -1 for a line that is something else. */
  #matched = 0;
  #scan: JsonScan | undefined;

  /** @param words a line that came in one piece and has none of them isn't looked through. */
  constructor(
    readonly newScan: () => JsonScan,
    readonly words: readonly string[],
  ) {}

  push(bytes: Buffer): void {
    this.bytes += bytes.length;
    let word = -1;
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(lineFeed, at);
      const stop = end === -1 ? bytes.length : end;
      if (word < at) word = this.#nextWord(bytes, at);
      const isWhole = end !== -1 && this.#matched === 0;
      if (isWhole && word >= stop) this.events += startsWith(bytes, at) ? 1 : 0;
      else this.#inLine(bytes.subarray(at, stop));
      if (end === -1) return;
      this.#matched = 0;
      this.#scan = undefined;
      at = end + 1;
    }
  }

  /** Where the next of the words is; behind the last byte when there is none. */
  #nextWord(bytes: Buffer, from: number): number {
    const found = this.words.map((word) => bytes.indexOf(word, from)).filter((at) => at !== -1);
    return Math.min(bytes.length, ...found);
  }

  #inLine(bytes: Buffer): void {
    let at = 0;
    while (this.#scan === undefined && this.#matched >= 0 && at < bytes.length) {
      this.#matched = bytes[at] === field[this.#matched] ? this.#matched + 1 : -1;
      at += 1;
      if (this.#matched !== field.length) continue;
      this.events += 1;
      this.#scan = this.newScan();
    }
    if (this.#scan !== undefined && at < bytes.length) this.#scan.feed(bytes.subarray(at));
  }
}

function startsWith(bytes: Buffer, at: number): boolean {
  return field.every((byte, index) => bytes[at + index] === byte);
}
