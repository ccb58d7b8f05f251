import type { ServerResponse } from "node:http";

/**
 * Writes texts to a response as fast as its reader takes them. It holds none of them: a log's writer gathers what comes
 * together, and Node sends together what is written in one turn.
 */
export class RecordWriter {
  readonly #waiting = new Set<() => void>();

  constructor(readonly response: ServerResponse) {
    response.on("drain", () => this.#proceed());
    response.on("close", () => this.#proceed());
  }

  /** A promise while the reader is behind. */
  write(text: string): Promise<void> | undefined {
    const { response } = this;
    if (response.destroyed || response.write(text) || response.destroyed) return undefined;
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** Whether the reader has taken everything. */
  get idle(): boolean {
    return !this.response.writableNeedDrain;
  }

  end(): void {
    if (!this.response.destroyed) this.response.end();
  }

  #proceed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
