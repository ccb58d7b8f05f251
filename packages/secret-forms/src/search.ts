import { randomInt } from "node:crypto";

/** Random, so that callers can't choose steps that collide. */
const seed = randomInt(2 ** 31);

/**
 * Finds any of many strings in a text, reading each character once (Aho and Corasick, 1975): the time depends
 * neither on the number of strings nor on their similarity, both of which callers choose.
 */
export class Automaton {
  /** How many characters each state has matched, and the state of its longest true suffix. */
  readonly #depth: Int32Array;
  readonly #fallback: Int32Array;
  /** One more than the index of the longest text that ends at each state; 0 if none does. */
  readonly #ending: Int32Array;
  readonly #lengths: Int32Array;
  /** A hash table of the steps, by state and character: a run of `0` ends a search. */
  readonly #from: Int32Array;
  readonly #by: Uint16Array;
  readonly #to: Int32Array;
  readonly #mask: number;
  /** The steps from the first state by ASCII: most characters of most texts begin nothing. */
  readonly #first = new Int32Array(128);

  constructor(texts: readonly string[]) {
    const max = 1 + texts.reduce((sum, { length }) => sum + length, 0);
    this.#depth = new Int32Array(max);
    this.#fallback = new Int32Array(max);
    this.#ending = new Int32Array(max);
    this.#lengths = Int32Array.from(texts, ({ length }) => length);
    const size = 2 ** Math.ceil(Math.log2(max * 2));
    this.#from = new Int32Array(size);
    this.#by = new Uint16Array(size);
    this.#to = new Int32Array(size);
    this.#mask = size - 1;
    this.#fill(texts, max);
  }

  /** The number of characters at the end of the input that may begin one of the strings. */
  depth(state: number): number {
    return this.#depth[state] ?? 0;
  }

  /** The index of the longest string that ends here; -1 if none does. */
  ending(state: number): number {
    return (this.#ending[state] ?? 0) - 1;
  }

  /** The length of the string with this index. */
  lengthOf(text: number): number {
    return this.#lengths[text] ?? 0;
  }

  /** The state after one more character. The first is 0. */
  step(state: number, character: number): number {
    for (let at = state; ; at = this.#fallback[at] ?? 0) {
      if (at === 0 && character < 128) return this.#first[character] ?? 0;
      const next = this.#to[this.#slot(at, character)] ?? 0;
      if (next !== 0 || at === 0) return next;
    }
  }

  /** The step's slot in the table, or the free slot for it. */
  #slot(state: number, character: number): number {
    let hash = Math.imul(state ^ seed, 0x9e37_79b1) ^ Math.imul(character, 0x85eb_ca6b);
    hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2_ae35);
    let slot = (hash ^ (hash >>> 13)) & this.#mask;
    while (this.#to[slot] !== 0 && (this.#from[slot] !== state || this.#by[slot] !== character)) {
      slot = (slot + 1) & this.#mask;
    }
    return slot;
  }

  #fill(texts: readonly string[], max: number): void {
    const parents = new Int32Array(max);
    const characters = new Uint16Array(max);
    let states = 1;
    for (const [position, text] of texts.entries()) {
      let state = 0;
      for (let index = 0; index < text.length; index += 1) {
        const character = text.charCodeAt(index);
        const slot = this.#slot(state, character);
        let next = this.#to[slot] ?? 0;
        if (next === 0) {
          next = states;
          states += 1;
          this.#from[slot] = state;
          this.#by[slot] = character;
          this.#to[slot] = next;
          this.#depth[next] = index + 1;
          parents[next] = state;
          characters[next] = character;
        }
        state = next;
      }
      // An empty text would end everywhere.
      if (state !== 0) this.#ending[state] = position + 1;
    }
    for (let character = 0; character < 128; character += 1) {
      this.#first[character] = this.#to[this.#slot(0, character)] ?? 0;
    }
    // Shorter ones first: a state's fallback is always shorter than the state.
    const order = this.#byDepth(states);
    for (const state of order) {
      if (this.depth(state) < 2) continue;
      const before = this.#fallback[parents[state] ?? 0] ?? 0;
      this.#fallback[state] = this.step(before, characters[state] ?? 0);
    }
    for (const state of order) {
      if (this.#ending[state] === 0) this.#ending[state] = this.#ending[this.#fallback[state] ?? 0] ?? 0;
    }
  }

  /** All states by depth (a counting sort). */
  #byDepth(states: number): Int32Array {
    const deepest = this.#depth.subarray(0, states).reduce((max, depth) => Math.max(max, depth), 0);
    const places = new Int32Array(deepest + 2);
    for (let state = 0; state < states; state += 1)
      places[this.depth(state) + 1] = (places[this.depth(state) + 1] ?? 0) + 1;
    for (let depth = 1; depth < places.length; depth += 1)
      places[depth] = (places[depth] ?? 0) + (places[depth - 1] ?? 0);
    const order = new Int32Array(states);
    for (let state = 0; state < states; state += 1) {
      const depth = this.depth(state);
      const place = places[depth] ?? 0;
      order[place] = state;
      places[depth] = place + 1;
    }
    return order;
  }
}

/** A part of an input that belongs to an occurrence of a searched text. */
export interface Part {
  readonly start: number;
  readonly end: number;
  /** The text's index. */
  readonly text: number;
  /** Where in the text the part begins: beyond 0 if it overlaps the previous occurrence. */
  readonly from: number;
}

/**
 * All that occurs in an input, as parts in order without overlaps. Each occurrence costs the same on average, however
 * often they overlap.
 */
export class Occurrences {
  #parts: Part[] = [];

  /** Adds an occurrence that ends at or after the previous one's end. */
  add(start: number, end: number, text: number): void {
    let last = this.#parts.at(-1);
    while (last !== undefined && last.start >= start) {
      this.#parts.pop();
      last = this.#parts.at(-1);
    }
    const begin = last === undefined ? start : Math.max(start, last.end);
    if (begin < end) this.#parts.push({ start: begin, end, text, from: begin - start });
  }

  /** Takes the parts that begin before this offset. */
  takeUntil(offset: number): readonly Part[] {
    if (this.#parts.length === 0) return none;
    const next = this.#parts.findIndex(({ start }) => start >= offset);
    if (next === 0) return none;
    return next === -1 ? this.#parts.splice(0) : this.#parts.splice(0, next);
  }
}

const none: readonly Part[] = [];
