import type { Readable } from "node:stream";

/** An archive isn't of its format. */
export class ArchiveDamaged extends Error {}

/**
 * Tells what the reader of a format objects to in an archive from what happens on the way to that reader: only the first is
 * a damaged archive.
 */
export class FormatReading {
  readonly #elsewhere = new WeakSet<Error>();

  /** The failures of this stream keep their meaning, though the reader passes them on like its own. */
  watch(stream: Readable): void {
    stream.on("error", (error) => this.#elsewhere.add(error));
  }

  /** @throws ArchiveDamaged; what a watched stream failed with */
  async *each<Entry>(entries: AsyncIterable<Entry>): AsyncGenerator<Entry, void, undefined> {
    try {
      yield* entries;
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  /** @throws ArchiveDamaged; what a watched stream failed with */
  async one<Read>(read: () => Promise<Read> | Read): Promise<Read> {
    try {
      return await read();
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  #meaning(error: unknown): unknown {
    if (error instanceof Error && this.#elsewhere.has(error)) return error;
    return new ArchiveDamaged("The archive isn't of its format.", { cause: error });
  }
}
