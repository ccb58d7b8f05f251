/** Characters of one request: many lines are sent in one request, but none waits for a large one. */
const maxRequestCharacters = 128 * 1_024;

interface Waiting {
  readonly lines: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Sends lines in order, one request at a time; lines that arrive meanwhile are sent with the next request. After a
 * failure nothing more is sent: whether the lines arrived is unknown, and later ones mustn't overtake them.
 */
export class InputQueue {
  #waiting: Waiting[] = [];
  #sending = false;
  #failure: { readonly error: unknown } | undefined;

  /** @param send sends one text; the platform adds a line feed to it. */
  constructor(readonly send: (text: string) => Promise<void>) {}

  /** @param lines complete, each with its line feed. */
  write(lines: string): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lines, resolve, reject });
      if (!this.#sending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0 && this.#failure === undefined) {
      const batch = this.#next();
      try {
        await this.send(
          batch
            .map(({ lines }) => lines)
            .join("")
            .replace(/\n$/, ""),
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        this.#failure = { error };
        for (const { reject } of [...batch, ...this.#waiting]) reject(error);
        this.#waiting = [];
      }
    }
    this.#sending = false;
  }

  #next(): Waiting[] {
    let length = 0;
    const within = this.#waiting.findIndex(({ lines }, index) => {
      length += lines.length;
      return index > 0 && length > maxRequestCharacters;
    });
    return this.#waiting.splice(0, within === -1 ? this.#waiting.length : within);
  }
}
