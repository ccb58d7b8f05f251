import type { EventChunk } from "../store/index.js";

/** Characters of committed events that are kept for readers that are nearly up to date. */
const maxCharacters = 1_048_576;

/** The committed end of a running run's log. Readers that are further behind read the store. */
export class LogTail {
  readonly #chunks: EventChunk[] = [];
  #size = 0;
  #last = 0;
  #result: string | undefined;
  #isLost = false;
  readonly #waiting = new Set<() => void>();

  /** The number of the last committed event. */
  get last(): number {
    return this.#last;
  }

  /** The result as JSON, once it is in the store. */
  get result(): string | undefined {
    return this.#result;
  }

  /** Nothing more is recorded here: from now on only the store knows the run's progress. */
  get isLost(): boolean {
    return this.#isLost;
  }

  add(chunk: EventChunk): void {
    this.#chunks.push(chunk);
    this.#size += chunk.text.length;
    this.#last = chunk.first + chunk.count - 1;
    while (this.#size > maxCharacters && this.#chunks.length > 1) {
      this.#size -= this.#chunks.shift()?.text.length ?? 0;
    }
    this.#wake();
  }

  end(result: string): void {
    this.#result = result;
    this.#wake();
  }

  lose(): void {
    this.#isLost = true;
    this.#wake();
  }

  /**
   * The records that were committed after this event, one page of them; undefined if only the store has them. A reader
   * keeps no more than this page, however long it doesn't read.
   * @param pageCharacters at least one chunk, then up to so many.
   */
  after(event: number, pageCharacters = maxCharacters): readonly EventChunk[] | undefined {
    if (event >= this.#last) return [];
    const first = this.#chunks.findIndex((chunk) => chunk.first + chunk.count > event + 1);
    const [oldest] = this.#chunks;
    if (oldest === undefined || oldest.first > event + 1) return undefined;
    let size = 0;
    const end = this.#chunks.findIndex((chunk, index) => {
      if (index < first) return false;
      size += chunk.text.length;
      return index > first && size > pageCharacters;
    });
    return this.#chunks.slice(first, end === -1 ? undefined : end);
  }

  /** Resolves when more was committed, the run ended, or the reader left. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
