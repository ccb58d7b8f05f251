import type { Socket } from "node:net";

/**
 * Reads a connection's first bytes on demand, then releases it. Between reads the socket is paused, so that no more
 * than one chunk beyond the requested bytes is buffered.
 */
export class SocketReader {
  readonly #socket: Socket;
  #chunks: Buffer[];
  #length: number;
  #ended = false;
  #wake: () => void = () => {};

  constructor(socket: Socket, head: Buffer = Buffer.alloc(0)) {
    this.#socket = socket;
    this.#chunks = [head];
    this.#length = head.length;
    socket.pause();
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onEnd);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#socket.pause();
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    this.#wake();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#wake();
  };

  /** Bytes buffered so far. */
  get length(): number {
    return this.#length;
  }

  /** Everything buffered, without consuming it, once it has `length` bytes or the peer has ended. */
  async peek(length: number): Promise<Buffer> {
    while (this.#length < length && !this.#ended && !this.#socket.destroyed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#socket.resume();
      });
    }
    const held = Buffer.concat(this.#chunks);
    this.#chunks = [held];
    return held;
  }

  /** Exactly `length` bytes, or undefined if the peer ended before. */
  async take(length: number): Promise<Buffer | undefined> {
    const held = await this.peek(length);
    if (held.length < length) return undefined;
    this.#chunks = [held.subarray(length)];
    this.#length -= length;
    return held.subarray(0, length);
  }

  /** Stops reading and returns what is buffered. The socket stays paused. */
  release(): Buffer {
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("close", this.#onEnd);
    return Buffer.concat(this.#chunks);
  }
}
