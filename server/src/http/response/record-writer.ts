import type { ServerResponse } from "node:http";
import { pieceEnd } from "@ambit/core/plugin";

/** Characters that are handed to the connection at a time. */
const partLength = 65_536;

/**
 * Writes texts to a response as fast as its reader takes them. It holds none of them: a log's writer gathers what comes
 * together, and Node sends together what is written in one turn.
 */
export class RecordWriter {
  readonly #waiting = new Set<() => void>();
  #silence: NodeJS.Timeout | undefined;

  constructor(readonly response: ServerResponse) {
    response.on("drain", () => this.#proceed());
    response.on("close", () => this.#proceed());
  }

  /** A promise while the reader is behind. */
  write(text: string | Uint8Array): Promise<void> | undefined {
    const { response } = this;
    this.#silence?.refresh();
    if (response.destroyed || response.write(text) || response.destroyed) return undefined;
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** A text of any size, in parts: the connection copies what its reader doesn't take at once. */
  async writeInParts(text: string): Promise<void> {
    for (let start = 0; start < text.length; ) {
      const part = text.slice(start, pieceEnd(text, start + partLength));
      start += part.length;
      const room = this.write(part);
      if (room !== undefined) await room;
    }
  }

  /** Writes a text after each `silenceMs` without any, until it is disposed. A reader that is behind gets none. */
  fillSilence(text: string, silenceMs: number): Disposable {
    const silence = setInterval(() => {
      if (this.#waiting.size === 0) void this.write(text);
    }, silenceMs);
    this.#silence = silence;
    return { [Symbol.dispose]: () => clearInterval(silence) };
  }

  end(): void {
    if (!this.response.destroyed) this.response.end();
  }

  #proceed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
