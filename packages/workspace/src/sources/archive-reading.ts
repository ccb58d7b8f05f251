import type { Readable } from "node:stream";

/** An archive, wherever it is kept. */
export interface ArchiveBytes {
  readonly size: number;
  /** @param end the place after the last byte */
  read(start: number, end: number): AsyncIterable<Uint8Array>;
}

export function inMemory(bytes: Buffer): ArchiveBytes {
  return {
    size: bytes.length,
    read: async function* (start, end) {
      yield bytes.subarray(start, end);
    },
  };
}

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

/** An archive has more than was asked for. */
export class ArchiveTooLarge extends Error {}

/** An archive says too much of a file beside its content. */
export class TarHeaderTooLong extends Error {}
