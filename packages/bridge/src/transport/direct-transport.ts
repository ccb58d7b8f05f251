import type { Writable } from "node:stream";
import {
  type ByteFrameListener,
  ByteFrames,
  type ByteSignal,
  dataChunkEnd,
  dataPieces,
  plainBytes,
} from "./byte-format.js";
import type { PlainFrame, StreamId } from "./frame.js";
import { type Transport, TransportBroken } from "./frame.js";

/** Bytes that may wait for the pipe; beyond that, data waits. */
const maxWaiting = 1024 * 1024;
/** Including frames that don't wait: a peer that causes responses without reading them would fill our memory. */
const maxUnreadBytes = 4 * maxWaiting;

/**
 * Frames over one permanent binary pipe: nothing is numbered, buffered or sent again, and nothing is
 * encoded. It is lost with its pipe.
 */
export class DirectTransport implements Transport {
  readonly #frames: ByteFrames;
  #output: Writable | undefined;
  /** Frames of this turn of the event loop. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #waiting: (() => void)[] = [];

  constructor(listener: ByteFrameListener) {
    this.#frames = new ByteFrames(listener);
  }

  /** Attaches the pipe for frames. Before that, and after it is closed, they are dropped. */
  attach(output: Writable): void {
    this.#output = output;
    output.on("drain", () => this.#wake());
    output.once("close", () => this.close());
  }

  /** @throws TransportBroken, or what the listener throws: the other side broke the protocol. */
  accept(bytes: Uint8Array): void {
    if (this.#unread > maxUnreadBytes) throw new TransportBroken("The peer reads nothing");
    this.#frames.push(bytes);
  }

  send(frame: PlainFrame): void {
    this.#write(plainBytes(frame));
  }

  signal(op: ByteSignal, value: number): void {
    this.#write(plainBytes([op, value]));
  }

  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    for (const piece of dataPieces(channel, stream, bytes)) this.#write(piece);
  }

  room(): Promise<void> | undefined {
    if (this.#unread <= maxWaiting) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  chunkEnd(bytes: Uint8Array, start: number, max: number): number {
    return dataChunkEnd(bytes, start, max);
  }

  /** Permanent: nothing more is sent, and all waits end. */
  close(): void {
    this.#flush();
    this.#output = undefined;
    this.#wake();
  }

  get #unread(): number {
    return this.#output === undefined ? 0 : this.#output.writableLength + this.#pendingBytes;
  }

  /** Everything from one turn of the event loop goes to the kernel in one write. */
  #write(bytes: Uint8Array): void {
    if (this.#output === undefined || this.#output.destroyed) return;
    this.#pendingBytes += bytes.length;
    if (this.#pending.push(bytes) === 1) process.nextTick(() => this.#flush());
  }

  #flush(): void {
    const output = this.#output;
    const [first, ...others] = this.#pending;
    if (first === undefined || output === undefined) return;
    this.#pending = [];
    this.#pendingBytes = 0;
    // One piece is the usual case, and queueing in the stream costs more than the write.
    if (others.length > 0) output.cork();
    output.write(first);
    for (const bytes of others) output.write(bytes);
    if (others.length > 0) output.uncork();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
