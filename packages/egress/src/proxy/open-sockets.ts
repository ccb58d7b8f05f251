import type { Socket } from "node:net";

/** Every socket of one session, both sides, so that `close()` leaves none. */
export class OpenSockets {
  readonly #sockets = new Set<Socket>();

  get size(): number {
    return this.#sockets.size;
  }

  add(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.add(socket);
    // "close" follows every error, and the socket's user acts on it; without a listener the error would end the process.
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
