import type { Socket } from "node:net";
import type { FrameSink } from "../../transport/reliable-transport.js";

/** Collects the lines of one turn of the event loop: a write to the kernel costs more than a line. */
export class SocketSink implements FrameSink {
  readonly #socket: Socket;
  #lines: string[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(lines: string): void {
    this.#lines.push(lines);
    if (this.#lines.length > 1) return;
    setImmediate(() => {
      const all = this.#lines.join("");
      this.#lines = [];
      if (!this.#socket.destroyed) this.#socket.write(Buffer.from(all, "utf8"));
    });
  }
}
