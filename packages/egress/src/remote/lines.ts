import { LineSplitter } from "@ambit/core/plugin";

/** Bytes of one message to the gate: with the authorities of a host, half a megabyte. */
export const maxToGateBytes = 16 * 1024 * 1024;
/** Bytes of any other message. */
export const maxMessageBytes = 64 * 1024;

/** Messages in lines of JSON, in pieces of any size. */
export class MessageReader {
  readonly #lines: LineSplitter;
  readonly #take: (message: unknown) => void;

  /** @param maxBytes of one line. */
  constructor(maxBytes: number, take: (message: unknown) => void) {
    this.#lines = new LineSplitter({
      maxBytes,
      tooLong: () => new Error(`a message has more than ${maxBytes} bytes`),
    });
    this.#take = take;
  }

  /** @throws Error for a line that is too long or isn't JSON; what `take` throws */
  push(bytes: Uint8Array): void {
    for (const line of this.#lines.push(bytes)) this.#take(JSON.parse(line));
  }
}

export const lineOf = (message: object): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);
