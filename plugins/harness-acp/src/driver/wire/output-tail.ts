/** Keeps the last of a stream and lets the rest go: an agent that isn't read blocks on a full pipe. */
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

  /** A word that was cut is left out: the rest of a secret isn't recognised as one. */
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
