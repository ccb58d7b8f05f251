/** Keeps the last of a stream and lets the rest go: an agent that isn't read blocks on a full pipe. */
export class OutputTail {
  readonly #decoder = new TextDecoder();
  #text = "";

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

  get text(): string {
    return this.#text;
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stream) this.#add(this.#decoder.decode(chunk, { stream: true }));
  }

  #add(text: string): void {
    this.#text = `${this.#text}${text}`.slice(-this.limit);
  }
}
