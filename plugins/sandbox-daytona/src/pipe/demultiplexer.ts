const markers = { stdout: Buffer.from([1, 1, 1]), stderr: Buffer.from([2, 2, 2]) } as const;
type Stream = keyof typeof markers;

export interface Labelled {
  readonly stream: Stream;
  readonly bytes: Buffer;
}

/**
 * Splits the platform's log of a command: each line starts with a marker of three bytes that names its stream. Bytes
 * before the first marker belong to no stream and are dropped.
 */
export class Demultiplexer {
  #stream: Stream | undefined;
  #held: Buffer = Buffer.alloc(0);

  *feed(chunk: Uint8Array): Iterable<Labelled> {
    const data = Buffer.concat([this.#held, chunk]);
    let start = 0;
    const next = {
      stdout: data.indexOf(markers.stdout),
      stderr: data.indexOf(markers.stderr),
    };
    while (next.stdout !== -1 || next.stderr !== -1) {
      const stream =
        next.stderr === -1 || (next.stdout !== -1 && next.stdout < next.stderr) ? "stdout" : "stderr";
      yield* this.#piece(data.subarray(start, next[stream]));
      this.#stream = stream;
      start = next[stream] + markers[stream].length;
      next[stream] = data.indexOf(markers[stream], start);
    }
    const end = data.length - beginning(data.subarray(start));
    yield* this.#piece(data.subarray(start, end));
    this.#held = data.subarray(end);
  }

  /** Bytes that were held back, if nothing follows. */
  *end(): Iterable<Labelled> {
    yield* this.#piece(this.#held);
    this.#held = Buffer.alloc(0);
  }

  *#piece(bytes: Buffer): Iterable<Labelled> {
    if (bytes.length > 0 && this.#stream !== undefined) yield { stream: this.#stream, bytes };
  }
}

/** How many bytes at the end may be the beginning of a marker. */
function beginning(data: Buffer): number {
  const last = data.at(-1);
  if (last !== 1 && last !== 2) return 0;
  return data.at(-2) === last ? 2 : 1;
}
