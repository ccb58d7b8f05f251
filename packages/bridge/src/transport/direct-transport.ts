import type { Writable } from "node:stream";
import {
  type ByteFrameListener,
  ByteFrames,
  type ByteSignal,
  header,
  longestByteFrame,
  plainBytes,
} from "./byte-frames.js";
import type { PlainFrame, StreamId } from "./frame.js";
import { TransportBroken } from "./reliable-transport.js";
import type { Transport } from "./transport.js";

/** Bytes that wait for the pipe: data waits where there are more. */
const mostWaiting = 1024 * 1024;
/** Including what doesn't wait: a peer that causes responses and reads nothing would fill our memory. */
const mostUnread = 4 * mostWaiting;
/** Payloads up to this go out together with their header. */
const copied = 4 * 1024;

/**
 * Frames over one pipe that carries any bytes and lasts: nothing is numbered, kept or sent again, and nothing is
 * encoded. It is lost with its pipe.
 */
export class DirectTransport implements Transport {
  readonly #frames: ByteFrames;
  #output: Writable | undefined;
  #isCorked = false;
  #waiting: (() => void)[] = [];

  constructor(listener: ByteFrameListener) {
    this.#frames = new ByteFrames(listener);
  }

  /** Frames go here from now on. Until then, and once it is closed, they are dropped. */
  attach(output: Writable): void {
    this.#output = output;
    output.on("drain", () => this.#wake());
    output.once("close", () => this.close());
  }

  /** @throws TransportBroken, or what the listener throws: the other side broke the protocol. */
  accept(bytes: Uint8Array): void {
    if ((this.#output?.writableLength ?? 0) > mostUnread) throw new TransportBroken("The peer reads nothing");
    this.#frames.push(bytes);
  }

  send(frame: PlainFrame): void {
    this.#write(plainBytes(frame));
  }

  signal(op: ByteSignal, value: number): void {
    this.#write(plainBytes([op, value]));
  }

  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    const head = header("data", channel, stream, bytes.length);
    if (bytes.length <= copied) {
      this.#write(Buffer.concat([head, bytes]));
    } else {
      this.#write(head);
      this.#write(bytes);
    }
  }

  room(): Promise<void> | undefined {
    if ((this.#output?.writableLength ?? 0) <= mostWaiting) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  chunkEnd(bytes: Uint8Array, start: number, most: number): number {
    return Math.min(bytes.length, start + Math.min(most, longestByteFrame));
  }

  /** Permanently: nothing more is sent, and all waits end. */
  close(): void {
    this.#output = undefined;
    this.#wake();
  }

  /** What is said in one turn of the loop goes to the kernel in one write. */
  #write(bytes: Uint8Array): void {
    const output = this.#output;
    if (output === undefined || output.destroyed) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      output.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        output.uncork();
      });
    }
    output.write(bytes);
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
