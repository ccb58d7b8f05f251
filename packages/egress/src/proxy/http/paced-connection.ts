import type { Server } from "node:http";
import { createServer, type Server as Listener, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { turnForOne } from "@ambit/core/plugin";

/** Line ends that are read in one step: HTTP's parser handles a chunk, or a line of a header, for each. */
const maxLines = 128;

const lineEnd = Buffer.from("\r\n");

/**
 * A client's connection as Node's HTTP server gets it. Node reads 64 KiB of each connection in one turn of the event loop, which
 * can be 10,000 chunks of a single byte, and up to 2 MiB in a row: here, what has very many lines is read a part in each
 * turn, of one connection. The rest passes as it comes.
 */
export class PacedConnection extends Duplex {
  readonly #socket: Socket;
  /** What waits for a turn. */
  #held: Buffer | undefined;
  #hasEnded = false;
  #isReleased = false;

  constructor(socket: Socket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    socket.on("data", this.#take).on("end", this.#end).on("error", this.#fail);
    socket.on("close", this.#close).on("timeout", this.#idle);
    socket.pause();
  }

  /** The connection itself, and what was read of it and isn't used: from now on, it isn't read here, only ended. */
  release(rest: Buffer): { readonly socket: Socket; readonly head: Buffer } {
    const socket = this.#socket;
    this.#isReleased = true;
    socket.off("data", this.#take).off("end", this.#end).off("error", this.#fail);
    socket.off("close", this.#close).off("timeout", this.#idle).pause();
    const held = this.#held;
    this.#held = undefined;
    return { socket, head: held === undefined ? rest : Buffer.concat([rest, held]) };
  }

  setTimeout(milliseconds: number): this {
    this.#socket.setTimeout(milliseconds);
    return this;
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  override _read(): void {
    if (this.#held === undefined && !this.#isReleased) this.#socket.resume();
  }

  override _write(piece: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(piece, encoding, done);
  }

  override _writev(
    pieces: { readonly chunk: Buffer; readonly encoding: BufferEncoding }[],
    done: (error?: Error | null) => void,
  ): void {
    const socket = this.#socket;
    const last = pieces.length - 1;
    socket.cork();
    for (const [at, { chunk, encoding }] of pieces.entries()) {
      if (at === last) socket.write(chunk, encoding, done);
      else socket.write(chunk, encoding);
    }
    socket.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  readonly #take = (piece: Buffer): void => {
    const end = linesEnd(piece);
    if (end === piece.length) {
      if (!this.push(piece)) this.#socket.pause();
      return;
    }
    this.#socket.pause();
    this.#held = piece;
    this.#pass(end);
  };

  /** Passes on the first bytes of what is held, and in the next turn those after them. */
  #pass(end: number): void {
    void turnForOne().then(() => {
      const held = this.#held;
      if (held === undefined || this.destroyed) return;
      const remainder = held.subarray(end);
      this.#held = remainder.length === 0 ? undefined : remainder;
      this.push(held.subarray(0, end));
      if (this.#held !== undefined) this.#pass(linesEnd(remainder));
      else if (this.#hasEnded) this.push(null);
      else if (!this.isPaused()) this.#socket.resume();
    });
  }

  readonly #end = (): void => {
    this.#hasEnded = true;
    if (this.#held === undefined) this.push(null);
  };
  readonly #fail = (error: Error): void => void this.destroy(error);
  readonly #close = (): void => void this.destroy();
  readonly #idle = (): void => void this.emit("timeout");
}

/** Listens in place of an HTTP server, whose connections are paced then. To close the server doesn't close the listener. */
export function pacedListener(server: Server): Listener {
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    server.emit("connection", new PacedConnection(socket));
  });
  // From then on it looks at the deadlines of its requests.
  return listener.once("listening", () => server.emit("listening"));
}

/** Where the last of so many lines ends; the whole piece where it has no more. Pure. */
export function linesEnd(piece: Buffer): number {
  let end = 0;
  for (let count = 0; count < maxLines; count += 1) {
    const at = piece.indexOf(lineEnd, end);
    if (at === -1) return piece.length;
    end = at + lineEnd.length;
  }
  return end;
}
