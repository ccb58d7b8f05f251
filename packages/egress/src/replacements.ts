import { Automaton, Occurrences, pairedForms } from "@ambit/secret-forms";

/** Bytes to find, and their replacement of the same length, so that no framing changes. */
export interface Replacement {
  readonly find: Buffer;
  readonly put: Buffer;
}

/** Entries of the table of pairs. Small enough for the processor's L1 cache. */
const tableSize = 4_096;

/**
 * Several byte sequences and their replacements, found in time that depends neither on their number nor on their
 * similarity. Of text that has nothing in common with them, only few bytes are read (Wu and Manber, 1994): the pair of
 * bytes at the end of a window determines how far the window can move. The automaton reads the rest, each byte once.
 */
export class Replacements {
  readonly automaton: Automaton;
  readonly #list: readonly Replacement[];
  readonly #minLength: number;
  readonly #shifts = new Uint16Array(tableSize);

  /** @throws RangeError for a replacement that changes a length, or looks for fewer than two bytes. */
  constructor(replacements: readonly Replacement[]) {
    const byText = new Map<string, Replacement>();
    for (const replacement of replacements) {
      const { find, put } = replacement;
      if (find.length < 2 || find.length !== put.length) {
        throw new RangeError("a replacement must be as long as what it replaces, and two bytes or more");
      }
      const text = find.toString("latin1");
      if (!byText.has(text)) byText.set(text, replacement);
    }
    this.#list = [...byText.values()];
    this.automaton = new Automaton([...byText.keys()]);
    const minLength = this.#list.reduce((min, { find }) => Math.min(min, find.length), 0xffff);
    this.#minLength = minLength;
    this.#shifts.fill(minLength - 1);
    for (const { find } of this.#list) {
      for (let end = 1; end < minLength; end += 1) {
        const entry = entryOf(find[end - 1] ?? 0, find[end] ?? 0);
        this.#shifts[entry] = Math.min(this.#shifts[entry] ?? 0, minLength - 1 - end);
      }
    }
  }

  get isEmpty(): boolean {
    return this.#list.length === 0;
  }

  /** The replacement of the automaton's text with this index. */
  at(text: number): Buffer | undefined {
    return this.#list[text]?.put;
  }

  /** The next position, at or after `from`, where one of them may begin; where a window no longer fits, that position. */
  skip(bytes: Buffer, from: number): number {
    const shifts = this.#shifts;
    const before = this.#minLength - 1;
    let end = from + before;
    while (end < bytes.length) {
      const shift = shifts[entryOf(bytes[end - 1] as number, bytes[end] as number)] as number;
      if (shift === 0) break;
      end += shift;
    }
    return Math.min(end - before, bytes.length);
  }
}

function entryOf(first: number, second: number): number {
  return ((first << 5) ^ second) & (tableSize - 1);
}

/** Replacements for a value in every form in which servers repeat it, each by a stand-in of the same form and length. */
export function replacementsFor(value: string, standIn: string): readonly Replacement[] {
  const fitted = Buffer.alloc(Buffer.byteLength(value), standIn).toString();
  return pairedForms(value, fitted).map((pair) => {
    const find = Buffer.from(pair.form);
    return { find, put: Buffer.alloc(find.length, pair.standIn) };
  });
}

/**
 * Replaces byte sequences in a stream, even across chunks. Where two overlap, both are replaced. Holds back only the end
 * of a chunk that may be the beginning of a sequence, so a stream of events isn't delayed.
 */
export class StreamReplacer {
  #replacements: Replacements;
  #found = new Occurrences();
  #state = 0;
  #held: Buffer = nothing;
  /** Where `#held` begins in the whole stream. */
  #offset = 0;

  constructor(replacements: Replacements) {
    this.#replacements = replacements;
  }

  /** Searches for these from now on, also in what is held back. */
  follow(replacements: Replacements): void {
    if (replacements === this.#replacements) return;
    this.#replacements = replacements;
    this.#found = new Occurrences();
    this.#state = 0;
    this.#search(this.#held, 0);
  }

  /** @returns what can be passed on; may be empty. Never changes `chunk`. */
  push(chunk: Buffer): Buffer {
    if (this.#replacements.isEmpty) return chunk;
    const before = this.#held.length;
    const bytes = before === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#search(bytes, before);
    const end = bytes.length - this.#replacements.automaton.depth(this.#state);
    const replaced = this.#replace(bytes, end, before === 0);
    this.#offset += end;
    if (end === bytes.length) {
      this.#held = nothing;
      return replaced;
    }
    this.#held = replaced.subarray(end);
    return replaced.subarray(0, end);
  }

  /** What was held back, at the end of the stream. */
  end(): Buffer {
    const tail = this.#replace(this.#held, this.#held.length, true);
    this.#offset += tail.length;
    this.#held = nothing;
    this.#state = 0;
    return tail;
  }

  /** Reads `bytes`, which begin at `#offset`, from `from` on, and notes what occurs. */
  #search(bytes: Buffer, from: number): void {
    const { automaton } = this.#replacements;
    let state = this.#state;
    for (let at = from; at < bytes.length; at += 1) {
      if (state === 0) {
        at = this.#replacements.skip(bytes, at);
        if (at === bytes.length) break;
      }
      state = automaton.step(state, bytes[at] as number);
      const text = automaton.ending(state);
      if (text === -1) continue;
      const end = this.#offset + at + 1;
      this.#found.add(end - automaton.lengthOf(text), end, text);
    }
    this.#state = state;
  }

  /** The bytes with all that begins before `end` replaced. @param isShared they must not be changed. */
  #replace(bytes: Buffer, end: number, isShared: boolean): Buffer {
    const parts = this.#found.takeUntil(this.#offset + end);
    if (parts.length === 0) return bytes;
    const copy = isShared ? Buffer.from(bytes) : bytes;
    for (const { start, end: to, text, from } of parts) {
      this.#replacements.at(text)?.copy(copy, start - this.#offset, from, from + to - start);
    }
    return copy;
  }
}

/** Replaces in a complete text. */
export function replaceIn(text: string, replacements: Replacements, encoding: "latin1" | "utf8"): string {
  const replacer = new StreamReplacer(replacements);
  const passed = replacer.push(Buffer.from(text, encoding));
  return Buffer.concat([passed, replacer.end()]).toString(encoding);
}

const nothing = Buffer.alloc(0);
