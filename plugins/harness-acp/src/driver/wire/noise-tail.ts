import { shortLine } from "../json-reading.js";

/** Lines that are kept, and characters of each. */
const [maxLines, maxLength] = [3, 200];

/** The last lines that an agent printed in place of messages. */
export class NoiseTail {
  readonly #lines: string[] = [];

  add(line: string): void {
    const short = shortLine(line, maxLength);
    if (short === "") return;
    // A truncated word is left out: the rest of a secret wouldn't be recognised as one.
    this.#lines.push(short.length > maxLength ? short.replace(/\S*…$/, "…") : short);
    if (this.#lines.length > maxLines) this.#lines.shift();
  }

  /** Undefined if there were none. */
  get sentence(): string | undefined {
    if (this.#lines.length === 0) return undefined;
    return `Its last output that isn't ACP: ${this.#lines.map((line) => JSON.stringify(line)).join(", ")}.`;
  }
}
