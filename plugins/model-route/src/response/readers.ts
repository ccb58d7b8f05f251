import { KeptPieces } from "@ambit/core/plugin";
import type { JsonScan } from "../json-scan.js";

/** Finds the JSON in a response as it passes. */
export interface ResponseReader {
  push(bytes: Buffer): void;
  /** Bytes so far. */
  readonly bytes: number;
  /** Pieces of a streamed response so far. */
  readonly events: number;
}

/** A response in one document. */
export class WholeDocument implements ResponseReader {
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
const nextField = Buffer.from("\ndata:");

/** Server-sent events: one document in each `data:` line (WHATWG HTML, section 9.2). No line is kept. */
export class EventLines implements ResponseReader {
  bytes = 0;
  events = 0;
  /** Bytes of the line's field name that have matched; -1 for a line that is something else. */
  #matched = 0;
  #scan: JsonScan | undefined;

  readonly #words: readonly Buffer[];

  /** @param words a line that arrived in one piece and contains none of them is skipped. */
  constructor(
    readonly newScan: () => JsonScan,
    words: readonly string[],
  ) {
    this.#words = words.map((word) => Buffer.from(word));
  }

  push(bytes: Buffer): void {
    this.bytes += bytes.length;
    let at = 0;
    // The rest of a line that began in an earlier chunk.
    if (this.#matched !== 0) at = this.#passLine(bytes, at);
    const last = bytes.lastIndexOf(lineFeed) + 1;
    const nextWord = wordsIn(bytes, this.#words);
    for (let word = nextWord(at); word < last; word = nextWord(at)) {
      const line = Math.max(at, bytes.lastIndexOf(lineFeed, word) + 1);
      this.events += linesWithData(bytes.subarray(at, line));
      at = this.#passLine(bytes, line);
    }
    if (at < last) {
      this.events += linesWithData(bytes.subarray(at, last));
      at = last;
    }
    if (at < bytes.length) this.#passLine(bytes, at);
  }

  /** Scans a line, or the part of it that has arrived. @returns where the next one begins. */
  #passLine(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(lineFeed, from);
    this.#inLine(bytes.subarray(from, end === -1 ? bytes.length : end));
    if (end === -1) return bytes.length;
    this.#matched = 0;
    this.#scan = undefined;
    return end + 1;
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

/** The position of the next of the words, at or after a position; the end if there is none. */
function wordsIn(bytes: Buffer, words: readonly Buffer[]): (from: number) => number {
  // Each is searched again only after it was passed, so that a missing word doesn't cost a search for every other.
  const places = words.map(() => -1);
  return (from) => {
    for (const [index, word] of words.entries()) {
      if ((places[index] ?? 0) >= from) continue;
      const at = bytes.indexOf(word, from);
      places[index] = at === -1 ? bytes.length : at;
    }
    return Math.min(bytes.length, ...places);
  };
}

/** Of whole lines. */
function linesWithData(lines: Buffer): number {
  let count =
    lines.length >= field.length && lines.compare(field, 0, field.length, 0, field.length) === 0 ? 1 : 0;
  for (let at = lines.indexOf(nextField); at !== -1; at = lines.indexOf(nextField, at + nextField.length))
    count += 1;
  return count;
}

/** A message's prelude: total length, headers' length, checksum. */
const prelude = 12;
const checksum = 4;
/** A longer message is skipped: those with token counts are short. */
const maxMessageLength = 1_048_576;

/** `{"bytes":"…"}`, the wrapper of models' own events. */
const wrapped = /^\s*\{\s*"bytes"\s*:\s*"([A-Za-z0-9+/=]+)"/;

/** Messages of `application/vnd.amazon.eventstream`. The agent checks the checksums. */
export class AwsEvents implements ResponseReader {
  bytes = 0;
  events = 0;
  #parts = new KeptPieces();
  #held = 0;
  /** Remaining bytes of the current message; undefined until its length is known. */
  #missing: number | undefined;
  #isLong = false;

  constructor(readonly newScan: () => JsonScan) {}

  push(bytes: Buffer): void {
    this.bytes += bytes.length;
    let unread = bytes;
    while (unread.length > 0) {
      const wanted = this.#missing ?? 4 - this.#held;
      const taken = unread.subarray(0, wanted);
      unread = unread.subarray(taken.length);
      if (!this.#isLong) this.#parts.push(taken);
      this.#held += taken.length;
      if (this.#missing === undefined) {
        if (this.#held === 4) this.#begin();
      } else {
        this.#missing -= taken.length;
      }
      if (this.#missing === 0) this.#end();
    }
  }

  #begin(): void {
    const begun = this.#parts.take();
    const length = begun.readUInt32BE();
    this.#isLong = length > maxMessageLength;
    if (!this.#isLong) this.#parts.push(begun);
    // No valid message is shorter: one that claims to be would never end.
    this.#missing = Math.max(prelude + checksum, length) - 4;
  }

  #end(): void {
    this.events += 1;
    if (!this.#isLong) {
      const message = this.#parts.take();
      const payload = message.subarray(prelude + message.readUInt32BE(4), message.length - checksum);
      const inner = wrapped.exec(payload.toString("latin1"))?.[1];
      this.newScan().feed(inner === undefined ? payload : Buffer.from(inner, "base64"));
    }
    this.#held = 0;
    this.#missing = undefined;
    this.#isLong = false;
  }
}
