import {
  type ByteFrameListener,
  ByteFrames,
  frameBytes,
  header,
  maxDataFrameBytes,
  plainBytes,
} from "./byte-frames.js";
import { contentHeader, contentRecord, signalRecord } from "./byte-records.js";
import type { PlainFrame, StreamId } from "./frame.js";
import type { PipeSink, ResumableTransport } from "./pipe-format.js";
import { FrameMissing, TransportBroken } from "./reliable-transport.js";

/** Bytes after which an acknowledgement no longer waits. */
const bytesUnacknowledged = 256 * 1024;
/** Milliseconds that it waits for more bytes at most. */
const acknowledgementMs = 50;
/** Bytes that may await acknowledgement; beyond that, data waits. */
const maxBufferedBytes = 8 * 1024 * 1024;
/** Including frames that don't wait: a peer that sends without acknowledging would fill our memory. */
const maxUnacknowledgedBytes = 4 * maxBufferedBytes;
/** Payloads up to this size are sent together with their headers. */
const copied = 4 * 1024;

/**
 * One sequence of bytes that survives its pipes, with frames in it: bytes are kept until the other side has acknowledged
 * them, and what it hasn't received is sent again over the next pipe, from exactly there, even within a frame.
 */
export class ReliableByteTransport implements ResumableTransport<Uint8Array> {
  readonly #frames: ByteFrames;
  /** Bytes that aren't acknowledged yet; the first of them follows `#acknowledged` others. */
  #journal: Uint8Array[] = [];
  #kept = 0;
  #waiting: (() => void)[] = [];
  #acknowledged = 0;
  #received = 0;
  #sink: PipeSink<Uint8Array> | undefined;
  #bytesOwed = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ frame, data }: Pick<ByteFrameListener, "frame" | "data">) {
    this.#frames = new ByteFrames({
      frame,
      data,
      signal: () => {
        throw new TransportBroken("The peer sent a signal as a frame");
      },
    });
  }

  get received(): number {
    return this.#received;
  }

  /** Bytes that are buffered. */
  get kept(): number {
    return this.#kept;
  }

  send(frame: PlainFrame): void {
    this.#append(plainBytes(frame));
  }

  /** @param bytes that fit into a frame. The sender has waited for `room`. */
  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    if (bytes.length <= copied) {
      this.#append(frameBytes("data", channel, stream, bytes));
    } else {
      this.#append(header("data", channel, stream, bytes.length));
      this.#append(bytes);
    }
  }

  chunkEnd(bytes: Uint8Array, start: number, max: number): number {
    return Math.min(bytes.length, start + Math.min(max, maxDataFrameBytes));
  }

  room(): Promise<void> | undefined {
    if (this.#kept <= maxBufferedBytes || this.#isClosed) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  attach(sink: PipeSink<Uint8Array>, peerReceived: number): void {
    // May be lower than the acknowledged number: an older pipe can deliver a later acknowledgement sooner.
    this.acknowledged(peerReceived);
    this.#sink = sink;
    let offset = this.#acknowledged;
    for (const bytes of this.#journal) {
      write(sink, offset, bytes);
      offset += bytes.length;
    }
    this.#acknowledge();
  }

  detach(sink: PipeSink<Uint8Array>): void {
    if (this.#sink === sink) this.#sink = undefined;
  }

  /**
   * Bytes of the sequence. Those that have arrived already, over an older pipe, are dropped.
   *
   * @param offset how many come before them.
   * @throws FrameMissing, TransportBroken, or what the listener throws.
   */
  accept(offset: number, bytes: Uint8Array): void {
    const known = this.#received - offset;
    if (known >= bytes.length) return;
    if (known < 0) throw new FrameMissing(`Byte ${offset} came after ${this.#received}`);
    if (this.#kept > maxUnacknowledgedBytes) throw new TransportBroken("The peer sends no acknowledgements");
    const further = known === 0 ? bytes : bytes.subarray(known);
    this.#received += further.length;
    this.#bytesOwed += further.length;
    if (this.#bytesOwed >= bytesUnacknowledged) this.#acknowledge();
    else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#acknowledge(), acknowledgementMs);
      this.#timer.unref();
    }
    this.#frames.push(further);
  }

  acknowledged(received: number): void {
    if (received > this.#acknowledged + this.#kept)
      throw new TransportBroken(`The peer acknowledges byte ${received}, which wasn't sent`);
    let count = received - this.#acknowledged;
    if (count <= 0) return;
    this.#acknowledged = received;
    this.#kept -= count;
    let whole = 0;
    for (const { length } of this.#journal) {
      if (length > count) break;
      count -= length;
      whole += 1;
    }
    this.#journal.splice(0, whole);
    const [first] = this.#journal;
    if (first !== undefined && count > 0) this.#journal[0] = first.subarray(count);
    if (this.#kept <= maxBufferedBytes) this.#wake();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#isClosed = true;
    this.#sink = undefined;
    this.#journal = [];
    this.#kept = 0;
    this.#wake();
  }

  #append(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#sink !== undefined) write(this.#sink, this.#acknowledged + this.#kept, bytes);
    this.#journal.push(bytes);
    this.#kept += bytes.length;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #acknowledge(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#bytesOwed === 0 || this.#sink === undefined) return;
    this.#bytesOwed = 0;
    this.#sink.write(signalRecord(["ack", this.#received]));
  }
}

function write(sink: PipeSink<Uint8Array>, offset: number, bytes: Uint8Array): void {
  if (bytes.length <= copied) {
    sink.write(contentRecord(offset, bytes));
  } else {
    sink.write(contentHeader(offset, bytes.length));
    sink.write(bytes);
  }
}
