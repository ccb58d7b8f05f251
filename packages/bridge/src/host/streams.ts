/** One request, or one stream, of the runner to the guest daemon. */

import { Duplex } from "node:stream";
import { maxReadBytes } from "@ambit/backend-kit/safe-fs";
import { KeptPieces, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import type { Requests } from "../messages.js";
import type { Channel, ChannelListener, Channels, Taken } from "../transport/channels.js";
import { type StreamId, streams } from "../transport/transport.js";

/** The guest daemon's replies. It runs in the sandbox, so nothing that it sends is trusted. */
export const refusal = z.object({ refused: z.string().max(4_000) });
export const done = z.object({ done: z.literal(true) });
export const runStarted = z.object({
  started: z.object({ pid: z.int(), uid: z.int() }),
});
export const runEnded = z.object({
  exit: z.object({ code: z.int().nullable(), signal: z.string().nullable() }),
});
export const listening = z.object({ port: z.int().min(1).max(65_535) });
export const insideFacts = z.object({
  searchPath: z.string().max(4_000),
  node: z.string().max(100),
  uid: z.int(),
  ownUsers: z.boolean(),
  whyShared: z.string().max(4_000).optional(),
  openPorts: z.array(z.int().min(1).max(65_535)).max(100),
  closedBy: z.string().max(100).optional(),
  whyOpen: z.string().max(4_000).optional(),
});
export const insideContents = z.object({
  files: z.array(z.string().max(4_096)).max(2_000),
  processes: z.int().nonnegative(),
});

interface BridgeReply<Reply> {
  readonly reply: Reply;
  /** The data on the main stream before the reply. */
  readonly content: Uint8Array;
}

/** Bytes before a reply: the size of the largest file that can be read. A process inside may not send more. */
const maxContentBytes = maxReadBytes;

/**
 * One request on a separate channel, and its reply.
 * @param input sent on the main stream.
 * @throws SandboxFailed with the words of the guest daemon, or when the transport is lost.
 */
export function ask<Kind extends keyof Requests, Reply>(
  channels: Channels,
  kind: Kind,
  request: Requests[Kind],
  schema: z.ZodType<Reply>,
  input?: Uint8Array,
): Promise<BridgeReply<Reply>> {
  return new Promise((resolve, reject) => {
    const pieces = new KeptPieces();
    let length = 0;
    const channel = channels.open(kind, (opened) => ({
      data: (_lane, bytes, taken) => {
        length += bytes.length;
        if (length > maxContentBytes) {
          reject(
            new SandboxFailed(`The bridge inside sent more than ${maxContentBytes} bytes for '${kind}'`),
          );
          opened.close();
          return;
        }
        pieces.push(bytes);
        taken();
      },
      message: (message) => {
        const refused = refusal.safeParse(message);
        const reply = schema.safeParse(message);
        if (refused.success) reject(new SandboxFailed(refused.data.refused));
        else if (reply.success) resolve({ reply: reply.data, content: pieces.take() });
        else reject(new SandboxFailed(`The bridge inside gave no answer to '${kind}' that can be read`));
        opened.close();
      },
      closed: () => reject(new SandboxFailed("The sandbox is closed, or was lost")),
    }));
    const send = async () => {
      await channel.send(request);
      if (input === undefined) return;
      await channel.write(streams.main, input);
      channel.end(streams.main);
    };
    send().catch(reject);
  });
}

interface Piece {
  readonly bytes: Uint8Array;
  /** To be called when it was read. */
  readonly taken: () => void;
}

/** Bytes below which a piece is put together with others, and of such pieces together. */
const [small, together] = [256, 1_024];

/**
 * What waits for its reader. Small pieces are put together: each would take some 300 bytes of memory, and a process can write
 * single ones.
 */
class Pieces {
  readonly #pieces: Piece[] = [];
  /** The last ones, which are small. */
  #open: { readonly buffer: Buffer; length: number; readonly taken: Taken } | undefined;

  push(bytes: Uint8Array, taken: Taken): void {
    if (bytes.length >= small) {
      this.#close();
      this.#pieces.push({ bytes, taken: () => taken() });
      return;
    }
    if (this.#open !== undefined && this.#open.length + bytes.length > together) this.#close();
    this.#open ??= { buffer: Buffer.allocUnsafeSlow(together), length: 0, taken };
    this.#open.buffer.set(bytes, this.#open.length);
    this.#open.length += bytes.length;
  }

  shift(): Piece | undefined {
    if (this.#pieces.length === 0) this.#close();
    return this.#pieces.shift();
  }

  #close(): void {
    if (this.#open === undefined) return;
    const { buffer, length, taken } = this.#open;
    this.#open = undefined;
    this.#pieces.push({ bytes: buffer.subarray(0, length), taken: () => taken(length) });
  }
}

/** An incoming stream as a web stream: the window grows only as it is read. */
export class IncomingStream {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #pieces = new Pieces();
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
          for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift())
            piece.taken();
        },
      },
      { highWaterMark: 0 },
    );
  }

  push(bytes: Uint8Array, taken: Taken): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader !== undefined) enqueue(reader, { bytes, taken: () => taken() });
    // A reader that has left must not keep the writer waiting.
    else if (this.#isCancelled) taken();
    else this.#pieces.push(bytes, taken);
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
  const pieces = new Pieces();
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
        pieces.push(bytes, taken);
        if (isWanted) give();
      },
      end: () => {
        // Pending data is read first: Node keeps it before the end.
        for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
          duplex.push(piece.bytes);
          piece.taken();
        }
        finish();
      },
      closed: () => duplex.destroy(),
    },
  };
}
