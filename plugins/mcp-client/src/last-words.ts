/** Characters, in whole lines, of a server's output that an error quotes when it can't be reached: they often say why. */
const longestWords = 1_000;

/** Reads what a server writes to stderr, which would stop it unread, and keeps the end of it. */
export class LastWords {
  readonly #read: Promise<void>;
  readonly #lines: WholeLines;
  #end = "";

  constructor(stream: ReadableStream<Uint8Array>, said: (text: string) => void) {
    const decoder = new TextDecoder();
    this.#lines = new WholeLines(said);
    const reading = stream.pipeTo(
      new WritableStream({
        write: (chunk) => {
          const text = decoder.decode(chunk, { stream: true });
          this.#end = (this.#end + text).slice(-longestWords);
          this.#lines.push(text);
        },
      }),
    );
    // The server was killed: nothing more is said.
    this.#read = reading.catch(() => {}).finally(() => this.#lines.end());
  }

  /** Once the server has ended. */
  async all(): Promise<string> {
    await this.#read;
    // Of a line that was cut the rest might be that of a secret, which nothing would recognise any more.
    const whole = this.#end.length < longestWords ? 0 : this.#end.indexOf("\n") + 1 || longestWords;
    return this.#end.slice(whole).trim();
  }
}

/** Characters of a line that is logged. */
const longestLine = 2_000;

/**
 * Logs a text that comes in pieces line by line: a secret that two writes part stands whole in its line, where the log
 * knows it. Of a line that is too long only its length is logged, since a cut might leave half a secret.
 */
export class WholeLines {
  #waiting = "";
  #left = 0;

  constructor(readonly said: (line: string) => void) {}

  push(text: string): void {
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#add(line);
      this.end();
    }
    this.#add(rest);
  }

  /** The last line, which no line break ended. */
  end(): void {
    if (this.#left > 0) this.said(`[a line of ${this.#left} characters]`);
    else if (this.#waiting.trim() !== "") this.said(this.#waiting);
    this.#waiting = "";
    this.#left = 0;
  }

  #add(text: string): void {
    const length = Math.max(this.#left, this.#waiting.length) + text.length;
    if (length > longestLine) {
      this.#left = length;
      this.#waiting = "";
    } else this.#waiting += text;
  }
}
