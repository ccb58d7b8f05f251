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
