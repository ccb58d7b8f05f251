import type { Socket } from "node:net";
import { preamble } from "../../transport/byte-records.js";
import type { PipeSink } from "../../transport/transport.js";

/** Where the guest daemon writes to a pipe. */
export interface GuestSink<Written> extends PipeSink<Written> {
  /** After everything that was written. */
  end(): void;
}

/** Collects the lines of one turn of the event loop: a write to the kernel costs more than a line. */
export class LineSink implements GuestSink<string> {
  readonly #socket: Socket;
  #lines: string[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(lines: string): void {
    if (this.#lines.push(lines) === 1) setImmediate(() => this.#flush());
  }

  end(): void {
    this.#flush();
    this.#socket.end();
  }

  #flush(): void {
    const all = this.#lines.join("");
    this.#lines = [];
    if (all !== "" && !this.#socket.destroyed) this.#socket.write(Buffer.from(all, "utf8"));
  }
}

/** The same for bytes, after the preamble. */
export class ByteSink implements GuestSink<Uint8Array> {
  readonly #socket: Socket;
  #pieces: Uint8Array[] = [preamble];

  constructor(socket: Socket) {
    this.#socket = socket;
    setImmediate(() => this.#flush());
  }

  write(bytes: Uint8Array): void {
    if (this.#pieces.push(bytes) === 1) setImmediate(() => this.#flush());
  }

  end(): void {
    this.#flush();
    this.#socket.end();
  }

  #flush(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    if (this.#socket.destroyed) return;
    this.#socket.cork();
    for (const bytes of pieces) this.#socket.write(bytes);
    this.#socket.uncork();
  }
}
