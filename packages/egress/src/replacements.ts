import { Automaton, pairedForms } from "@ambit/secret-forms";

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
