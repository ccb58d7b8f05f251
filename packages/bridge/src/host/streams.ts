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
  #wanted: (() => void) | undefined;
  #isCancelled = false;

  constructor() {
    this.stream = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (this.#pieces.length === 0 && !this.#hasEnded) {
            await new Promise<void>((resolve) => {
              this.#wanted = resolve;
            });
          }
          const piece = this.#pieces.shift();
          if (piece === undefined) return controller.close();
          controller.enqueue(piece.bytes);
          piece.taken();
        },
        cancel: () => {
          this.#isCancelled = true;
          for (const { taken } of this.#pieces.splice(0)) taken();
        },
      },
      { highWaterMark: 0 },
    );
  }

  push(bytes: Uint8Array, taken: () => void): void {
    // A reader that left mustn't keep the writer waiting.
    if (this.#isCancelled) {
      taken();
    } else {
      this.#pieces.push({ bytes, taken });
      this.#wanted?.();
    }
  }

  end(): void {
    this.#hasEnded = true;
    this.#wanted?.();
  }
}

/** A stream that goes out, as a web stream. */
export function outgoingStream(channel: Channel, stream: StreamId): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    write: async (bytes) => {
      await channel.write(stream, bytes);
      if (channel.isClosed) throw new SandboxFailed("The process no longer reads its standard input");
    },
    close: () => channel.end(stream),
    abort: () => channel.end(stream),
  });
}

/** A connection as Node's servers take it: with `setTimeout`, as a socket has it. */
class Connection extends Duplex {
  #timer: NodeJS.Timeout | undefined;

  /** Emits `timeout` after so many milliseconds without a byte. 0: never. */
  setTimeout(limitMs: number, onTimeout?: () => void): this {
    clearTimeout(this.#timer);
    this.#timer = limitMs === 0 ? undefined : setTimeout(() => this.emit("timeout"), limitMs).unref();
    if (onTimeout !== undefined && limitMs > 0) this.once("timeout", onTimeout);
    return this;
  }

  /** A byte went by, or the last one has. */
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
  const duplex: Connection = new Connection({
    allowHalfOpen: true,
    read: () => {
      isWanted = true;
      give();
    },
    write: (bytes: Uint8Array, _encoding, done) => {
      duplex.touch(false);
      channel.write(streams.main, bytes).then(() => done(), done);
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
        // What waits is read first: Node keeps it in front of the end.
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
