import type { ServerResponse } from "node:http";

/**
 * Characters per write: large enough that the cost of a write doesn't matter, small enough to keep the stream flowing.
 */
const batchSize = 16 * 1024;

/**
 * Of a fast stream: after a batch of so many characters the next one gathers for `gatherMs`, or until it has `batchSize`.
 * Each write costs the server and the reader a system call and a turn, whatever it holds.
 */
const stream = { characters: 1_024, gatherMs: 2 };

/**
 * Writes texts to a response as fast as its reader takes them. Texts that arrive together are sent together; a single one
 * is sent before the next turn of the event loop.
 */
export class RecordWriter {
  #batch = "";
  #scheduled = false;
  /** When the last batch of a fast stream was written. */
  #flushedAt = Number.NEGATIVE_INFINITY;
  #full = false;
  #wake: (() => void) | undefined;

  constructor(readonly response: ServerResponse) {
    response.on("drain", () => this.#proceed());
    response.on("close", () => this.#proceed());
  }

  /** A promise while the reader is behind; a writer that awaits it leaves at most one batch here. */
  write(text: string): Promise<void> | undefined {
    if (this.response.destroyed) return undefined;
    this.#batch += text;
    if (this.#batch.length >= batchSize) this.#flush();
    else this.#schedule();
    return this.#full ? this.#room() : undefined;
  }

  /** Whether everything was handed to the connection and flushed. */
  get idle(): boolean {
    return this.#batch === "" && !this.#full;
  }

  end(): void {
    if (!this.response.destroyed) this.response.end(this.#batch);
    this.#batch = "";
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      if (this.#batch !== "" && !this.#full) this.#flush();
    };
    if (performance.now() - this.#flushedAt < stream.gatherMs) setTimeout(flush, stream.gatherMs);
    // Runs when everything that is ready has been written: not sooner, which would split it, and not a turn later.
    else process.nextTick(flush);
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = "";
    if (batch.length >= stream.characters) this.#flushedAt = performance.now();
    this.#full = !this.response.write(batch) && !this.response.destroyed;
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #proceed(): void {
    this.#full = false;
    this.#wake?.();
    this.#wake = undefined;
    if (this.#batch !== "") this.#schedule();
  }
}
