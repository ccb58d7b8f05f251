import { isJsonObject } from "@ambit/core/plugin";

/** Tokens since the last call. */
export interface Usage {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

const maxHeldCharacters = 8 * 1024 * 1024;

/** Reads the tokens that a response reports, a document's or a stream's, as it passes. */
export class UsageReader {
  readonly #isStream: boolean;
  readonly #decoder = new TextDecoder();
  #held = "";
  #reported: Usage = { input: 0, cached: 0, output: 0 };

  constructor(
    contentType: string,
    readonly report: (usage: Usage) => void,
  ) {
    this.#isStream = contentType.startsWith("text/event-stream");
  }

  push(bytes: Uint8Array): void {
    this.#held += this.#decoder.decode(bytes, { stream: true });
    if (this.#isStream) {
      const lines = this.#held.split("\n");
      this.#held = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data:")) this.#read(line.slice("data:".length));
    }
    // Its usage isn't counted then; the run goes on.
    if (this.#held.length > maxHeldCharacters) this.#held = "";
  }

  /** The whole document is there. */
  end(): void {
    if (!this.#isStream) this.#read(this.#held);
  }

  #read(json: string): void {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      return;
    }
    if (!isJsonObject(value)) return;
    const { message, usage = isJsonObject(message) ? message.usage : undefined } = value;
    if (!isJsonObject(usage)) return;
    const count = (name: string) => (typeof usage[name] === "number" ? usage[name] : 0);
    const cached = Math.max(count("cache_read_input_tokens"), this.#reported.cached);
    const input =
      count("input_tokens") + count("cache_read_input_tokens") + count("cache_creation_input_tokens");
    // Later events of a stream report only what has changed.
    const now = {
      input: Math.max(input, this.#reported.input),
      cached,
      output: Math.max(count("output_tokens"), this.#reported.output),
    };
    const { input: lastInput, cached: lastCached, output: lastOutput } = this.#reported;
    this.#reported = now;
    this.report({
      input: now.input - lastInput,
      cached: now.cached - lastCached,
      output: now.output - lastOutput,
    });
  }
}
