import { type Automaton, Occurrences } from "@ambit/secret-forms";

/**
 * Redacts a text that arrives in pieces. The joined output is the same however the text is split: the end of what
 * came is held back for as long as it could still become a secret. Secrets that overlap or touch become one mark.
 */
export class StreamRedactor {
  #state = 0;
  #held = "";
  /** Offsets in the whole input: where `#held` begins, and where the input read so far ends. */
  #from = 0;
  #read = 0;
  /** Found but not yet output. */
  #found = new Occurrences();
  /** Where the secret of the last mark ends. */
  #marked = -1;
  #automaton: Automaton;

  constructor(
    automaton: Automaton,
    readonly mark: string,
  ) {
    this.#automaton = automaton;
  }

  /** Searches for the secrets of another one from now on, also in what is held back. */
  follow(automaton: Automaton): void {
    this.#automaton = automaton;
    this.#found = new Occurrences();
    this.#state = 0;
    this.#search(this.#held, this.#from);
  }

  push(piece: string): string {
    this.#search(piece, this.#read);
    this.#read += piece.length;
    this.#held += piece;
    return this.#give(this.#read - this.#automaton.depth(this.#state));
  }

  /** Reads a text that begins at this offset of the input, and notes what occurs. */
  #search(text: string, offset: number): void {
    const automaton = this.#automaton;
    let state = this.#state;
    for (let index = 0; index < text.length; index += 1) {
      state = automaton.step(state, text.charCodeAt(index));
      const secret = automaton.ending(state);
      if (secret === -1) continue;
      const end = offset + index + 1;
      this.#found.add(end - automaton.lengthOf(secret), end, secret);
    }
    this.#state = state;
  }

  /** Returns what was held back, at the end of the input. */
  end(): string {
    const rest = this.#give(this.#read);
    this.#state = 0;
    this.#marked = -1;
    return rest;
  }

  /** Outputs what precedes `until`, which no later piece can change. */
  #give(until: number): string {
    let given = "";
    let at = this.#from;
    for (const { start, end } of this.#found.takeUntil(until)) {
      if (start > at) given += this.#text(at, start);
      if (start > this.#marked) given += this.mark;
      this.#marked = end;
      at = Math.max(at, end);
    }
    if (until > at) {
      given += this.#text(at, until);
      at = until;
    }
    this.#held = this.#held.slice(at - this.#from);
    this.#from = at;
    return given;
  }

  #text(start: number, end: number): string {
    return this.#held.slice(start - this.#from, end - this.#from);
  }
}
