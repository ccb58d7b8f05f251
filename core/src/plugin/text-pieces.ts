import { StringDecoder } from "node:string_decoder";
import { setImmediate as nextTurn } from "node:timers/promises";

export interface TextRead {
  readonly text: string;
  /** False if the source exceeds the limit: the text ends there, and the remainder wasn't read. */
  readonly isWhole: boolean;
}

/**
 * Reads an input as UTF-8 text. A large text is returned in its own turn of the event loop, since the caller parses it next.
 *
 * @param source null for an empty input, as in a request without a body
 * @param maxBytes the most bytes that are read
 */
export async function readText(
  source: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<TextRead> {
  const text = new KeptText();
  let room = maxBytes;
  for await (const piece of source ?? []) {
    text.push(piece.subarray(0, room));
    room -= piece.length;
    if (room < 0) break;
  }
  await turnForText(maxBytes - room);
  return { text: text.take(), isWhole: room >= 0 };
}

/** The UTF-8 text of an input that is kept until it is complete. */
export class KeptText {
  readonly #decoder = new StringDecoder("utf8");
  readonly #small = new SmallPieces();
  readonly #texts: string[] = [];

  push(piece: Uint8Array): void {
    for (const whole of this.#small.push(piece)) this.#texts.push(this.#decoder.write(whole));
  }

  take(): string {
    for (const whole of this.#small.end()) this.#texts.push(this.#decoder.write(whole));
    return this.#texts.join("") + this.#decoder.end();
  }
}

/** A piece of fewer bytes than `small` is copied together with others, `together` bytes at most. */
const [small, together] = [2_048, 8_192];

/**
 * Puts small pieces of an input together, for code that keeps an input until it is complete. Every piece costs some hundred
 * bytes of memory besides its content, and the sender chooses its size: in HTTP, each chunk becomes a piece.
 */
export class SmallPieces {
  #open: Uint8Array | undefined;
  #length = 0;

  /** @returns the pieces to keep now, in order; the remaining bytes follow later. None shares memory with a small piece. */
  push(piece: Uint8Array): readonly Uint8Array[] {
    if (piece.length >= small) return [...this.end(), piece];
    const full = this.#length + piece.length > together ? this.end() : [];
    // The buffer grows with its input, since most inputs are one small piece.
    if (this.#open === undefined || this.#length + piece.length > this.#open.length) {
      const larger = new Uint8Array(Math.min(together, 2 * (this.#length + piece.length)));
      if (this.#open !== undefined) larger.set(this.#open.subarray(0, this.#length));
      this.#open = larger;
    }
    this.#open.set(piece, this.#length);
    this.#length += piece.length;
    return full;
  }

  /** The number of bytes that `push` or `end` will still return. */
  get length(): number {
    return this.#length;
  }

  /** @returns the remaining bytes, at the input's end */
  end(): readonly Uint8Array[] {
    const open = this.#open;
    if (open === undefined || this.#length === 0) return [];
    const remainder = open.subarray(0, this.#length);
    this.#open = undefined;
    this.#length = 0;
    return [remainder];
  }
}

/** The bytes of an input that is kept until it is complete. */
export class KeptPieces {
  readonly #pieces: Uint8Array[] = [];
  readonly #small = new SmallPieces();

  push(piece: Uint8Array): void {
    this.#pieces.push(...this.#small.push(piece));
  }

  /** Returns all bytes and forgets them. */
  take(): Buffer {
    return Buffer.concat([...this.#pieces.splice(0), ...this.#small.end()]);
  }
}

const lineFeed = 0x0a;
/** The most bytes of memory that stay allocated between two lines. */
const keptBytes = 64 * 1024;

export interface LineSplitterOptions {
  /** The most bytes of a line, without its line feed. Default: any number. */
  readonly maxBytes?: number;
  /** The error for a longer line, thrown as soon as it is too long. Default: such a line is left out. */
  readonly tooLong?: () => Error;
  /** Returns the text that replaces a line that is left out, from the number of its characters. Default: nothing does. */
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

/** Counts UTF-16 characters in UTF-8 that may begin or end within a character: each counts where it begins. */
function charactersIn(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if ((byte & 0xc0) !== 0x80) count += byte >= 0xf0 ? 2 : 1;
  return count;
}

/**
 * The index at which a piece of the text may end: `end`, or one less where `end` would split a surrogate pair, whose halves
 * would each be encoded as a replacement character. Pure.
 */
export function pieceEnd(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return end < text.length && unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}

/**
 * The beginning of a text, without the word that the limit would cut, since redaction doesn't recognise half a credential.
 * Words end at white space and quotes. Pure.
 */
export function wholeWords(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = max;
  while (end > 0 && !/[\s"']/.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The end of a text that arrives in pieces, such as what a program printed last before it failed. */
export class TextEnd {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";
  #isCut = false;

  /** @param maxCharacters of it that are kept */
  constructor(readonly maxCharacters: number) {}

  push(piece: Uint8Array | string): void {
    const all = this.#text + (typeof piece === "string" ? piece : this.#decoder.write(piece));
    this.#isCut ||= all.length > this.maxCharacters;
    // Half of a pair at the beginning belongs to what is left out.
    this.#text = all.slice(Math.max(0, all.length - this.maxCharacters)).replace(/^[\uDC00-\uDFFF]/, "");
  }

  get text(): string {
    return this.#text;
  }

  /** Without the word that was cut at its beginning, `…` in its place: the other half of a secret wouldn't be recognised. */
  get words(): string {
    return this.#isCut ? this.#text.replace(/^\S*/, "…") : this.#text;
  }

  /** Without the line that was cut at its beginning. Empty where that is all of it. */
  get lines(): string {
    return this.#isCut ? this.#text.slice(this.#text.indexOf("\n") + 1 || this.#text.length) : this.#text;
  }
}

/** The last characters that a stream has, when it ends or fails: a process that is killed breaks its output. */
export async function endOf(stream: AsyncIterable<Uint8Array>, maxCharacters: number): Promise<string> {
  const end = new TextEnd(maxCharacters);
  try {
    for await (const piece of stream) end.push(piece);
  } catch {
    // What arrived is all there is.
  }
  return end.text;
}

/** Resolves when all earlier callers have had their turn. */
let lastTurn = Promise.resolve();

/** Bytes or characters. Parsing a larger text takes its own turn; a smaller one is parsed in less than a millisecond. */
const largeText = 65_536;

/**
 * Waits for a turn of the event loop for the caller alone, in the order of calls. Use it before work of some milliseconds
 * that many connections may cause at once: done in one turn, all of it would block every other connection for seconds.
 */
export function turnForOne(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTurn());
  return lastTurn;
}

/** Waits for a turn before a text of this length is parsed. Undefined for a short text, which needs no turn of its own. */
export function turnForText(length: number): Promise<void> | undefined {
  return length > largeText ? turnForOne() : undefined;
}
