import { Duplex } from "node:stream";
import { SandboxFailed } from "@ambit/core/plugin";
import type { Channel, ChannelListener } from "../transport/channel.js";
import { type StreamId, streams } from "../transport/frame.js";

interface Piece {
  readonly bytes: Uint8Array;
  readonly taken: () => void;
}

/** An incoming stream as a web stream: the window grows only as it is read. */
export class IncomingStream {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #pieces: Piece[] = [];
  #hasEnded = false;
  #isCancelled = false;
  /** The resolver of a pending read: it gets the next piece without another promise in between. */
  #reader: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor() {
    this.stream = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const piece = this.#pieces.shift();
          if (piece !== undefined) enqueue(controller, piece);
          else if (this.#hasEnded) controller.close();
          else this.#reader = controller;
        },
        cancel: () => {
          this.#isCancelled = true;
          this.#reader = undefined;
          for (const { taken } of this.#pieces.splice(0)) taken();
        },
      },
      { highWaterMark: 0 },
    );
  }

  push(bytes: Uint8Array, taken: () => void): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader !== undefined) enqueue(reader, { bytes, taken });
    // A reader that has left must not keep the writer waiting.
    else if (this.#isCancelled) taken();
    else this.#pieces.push({ bytes, taken });
  }

  end(): void {
    this.#hasEnded = true;
    this.#reader?.close();
    this.#reader = undefined;
  }
}

function enqueue(controller: ReadableStreamDefaultController<Uint8Array>, { bytes, taken }: Piece): void {
  controller.enqueue(bytes);
  taken();
}

/** An outgoing stream as a web stream. */
export function outgoingStream(channel: Channel, stream: StreamId): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    write: (bytes) => {
      const check = () => {
        if (channel.isClosed) throw new SandboxFailed("The process no longer reads its standard input");
      };
      const wait = channel.write(stream, bytes);
      return wait === undefined ? check() : wait.then(check);
    },
    close: () => channel.end(stream),
    abort: () => channel.end(stream),
  });
}

/** A connection as Node's servers take it: with `setTimeout`, as a socket has it. */
class StreamSocket extends Duplex {
  #timer: NodeJS.Timeout | undefined;

  /** Emits `timeout` after that many milliseconds without a byte. 0: never. */
  setTimeout(limitMs: number, onTimeout?: () => void): this {
    clearTimeout(this.#timer);
    this.#timer = limitMs === 0 ? undefined : setTimeout(() => this.emit("timeout"), limitMs).unref();
    if (onTimeout !== undefined && limitMs > 0) this.once("timeout", onTimeout);
    return this;
  }

  /** Called when bytes pass, and after the last one. */
  touch(isOver: boolean): void {
    if (isOver) this.setTimeout(0);
    else this.#timer?.refresh();
  }
}

/** A connection's two directions as one of Node's own streams. */
export function duplexOf(channel: Channel): { readonly duplex: Duplex; readonly listener: ChannelListener } {
  const pieces: Piece[] = [];
  let isWanted = false;
  const give = () => {
    for (let piece = pieces.shift(); piece !== undefined; piece = isWanted ? pieces.shift() : undefined) {
      duplex.touch(false);
      isWanted = duplex.push(piece.bytes);
      piece.taken();
    }
  };
  const duplex: StreamSocket = new StreamSocket({
    allowHalfOpen: true,
    read: () => {
      isWanted = true;
      give();
    },
    write: (bytes: Uint8Array, _encoding, done) => {
      duplex.touch(false);
      const wait = channel.write(streams.main, bytes);
      if (wait === undefined) done();
      else wait.then(() => done(), done);
    },
    final: (done) => {
      channel.end(streams.main);
      done();
    },
    destroy: (error, done) => {
      duplex.touch(true);
      channel.close();
      done(error);
    },
  });
  let hasEnded = false;
  const finish = () => {
    if (!hasEnded) duplex.push(null);
    hasEnded = true;
  };
  return {
    duplex,
    listener: {
      data: (_lane, bytes, taken) => {
        pieces.push({ bytes, taken });
        if (isWanted) give();
      },
      end: () => {
        // Pending data is read first: Node keeps it before the end.
        for (const { bytes, taken } of pieces.splice(0)) {
          duplex.push(bytes);
          taken();
        }
        finish();
      },
      closed: () => duplex.destroy(),
    },
  };
}
