import type { Replacements } from "./replacements.js";

/**
 * Replaces byte sequences in a stream, even across chunks. Holds back only the end of a chunk that may be the
 * beginning of a sequence, so a stream of events isn't delayed.
 */
export class StreamReplacer {
  readonly #replacements: Replacements;
  #held: Buffer = nothing;

  constructor(replacements: Replacements) {
    this.#replacements = replacements;
  }

  /** @returns what can be passed on; may be empty. Never changes `chunk`. */
  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const { passed, held } = replaced(bytes, this.#replacements, (from) =>
      this.#replacements.startOfTail(bytes, from),
    );
    this.#held = held;
    return passed;
  }

  /** What was held back, at the end of the stream. */
  end(): Buffer {
    const rest = this.#held;
    this.#held = nothing;
    return replaced(rest, this.#replacements, () => rest.length).passed;
  }
}

/** Replaces in a complete text. */
export function replaceIn(text: string, replacements: Replacements, encoding: "latin1" | "utf8"): string {
  const bytes = Buffer.from(text, encoding);
  return replaced(bytes, replacements, () => bytes.length).passed.toString(encoding);
}

/**
 * @param tailFrom the position, at or after another, where something begins that the next chunk may complete. What is
 * found there or later waits for it.
 */
function replaced(
  bytes: Buffer,
  replacements: Replacements,
  tailFrom: (from: number) => number,
): { readonly passed: Buffer; readonly held: Buffer } {
  let tail = tailFrom(0);
  let copy: Buffer | undefined;
  for (let from = 0; ; ) {
    const found = replacements.next(bytes, from);
    if (found === undefined || found.at >= tail) break;
    copy ??= Buffer.from(bytes);
    found.replacement.put.copy(copy, found.at);
    from = found.at + found.replacement.find.length;
    if (tail < from) tail = tailFrom(from);
  }
  const passed = copy ?? bytes;
  return tail === bytes.length
    ? { passed, held: nothing }
    : { passed: passed.subarray(0, tail), held: bytes.subarray(tail) };
}

const nothing = Buffer.alloc(0);
