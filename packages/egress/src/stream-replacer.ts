import { Occurrences } from "@ambit/secret-forms";
import type { Replacements } from "./replacements.js";

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
    const rest = this.#replace(this.#held, this.#held.length, true);
    this.#offset += rest.length;
    this.#held = nothing;
    this.#state = 0;
    return rest;
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
