import { shortLine } from "../json-reading.js";

/** Keeps the end of a stream and discards the rest: an agent whose output isn't read blocks on a full pipe. */
export class OutputTail {
  readonly #decoder = new TextDecoder();
  #text = "";
  #isCut = false;

  /** `limit` in characters. */
  constructor(
    stream: ReadableStream<Uint8Array>,
    readonly limit = 8_192,
  ) {
    this.#drain(stream).catch((error: unknown) => {
      this.#add(
        `\n(its error output could not be read: ${error instanceof Error ? error.message : String(error)})`,
      );
    });
  }

  /** A truncated word is left out: the rest of a secret wouldn't be recognised as one. */
  get text(): string {
    return this.#isCut ? this.#text.replace(/^\S*/, "…") : this.#text;
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream) this.#add(this.#decoder.decode(chunk, { stream: true }));
  }

  #add(text: string): void {
    const whole = `${this.#text}${text}`;
    this.#isCut ||= whole.length > this.limit;
    this.#text = whole.slice(-this.limit);
  }
}

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
