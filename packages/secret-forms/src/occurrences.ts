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
    const rest = this.#parts.findIndex(({ start }) => start >= offset);
    if (rest === 0) return none;
    return rest === -1 ? this.#parts.splice(0) : this.#parts.splice(0, rest);
  }
}

const none: readonly Part[] = [];
