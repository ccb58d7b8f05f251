import type { Pipe } from "../../platform.js";
import type { FrameSink } from "../../transport/reliable-transport.js";

/** Characters in one write of a pipe, which may be a request to a platform's API. */
const maxWriteCharacters = 48 * 1024;

/** Hands lines to a pipe one write at a time; lines that arrive meanwhile are part of the next write. */
export class PipeWriter implements FrameSink {
  readonly #pipe: Pipe;
  readonly #failed: (error: unknown) => void;
  #waiting: string[] = [];
  #isWriting = false;
  /** Characters written so far. */
  written = 0;

  constructor(pipe: Pipe, failed: (error: unknown) => void) {
    this.#pipe = pipe;
    this.#failed = failed;
  }

  write(lines: string): void {
    this.#waiting.push(lines);
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Together with the other lines of this turn of the event loop.
    setImmediate(() => {
      this.#drain().catch((error: unknown) => this.#failed(error));
    });
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const all = this.#waiting.join("");
      this.#waiting = [];
      for (let start = 0; start < all.length; ) {
        const end = cut(all, start);
        await this.#pipe.write(all.slice(start, end));
        this.written += end - start;
        start = end;
      }
    }
    this.#isWriting = false;
  }
}

/** The end of the last line that fits into a write. A line is shorter than a write. */
function cut(all: string, start: number): number {
  if (all.length - start <= maxWriteCharacters) return all.length;
  const end = all.lastIndexOf("\n", start + maxWriteCharacters - 1) + 1;
  return end > start ? end : all.length;
}
