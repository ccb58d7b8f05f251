import {
  dataLine,
  type Frame,
  frameLine,
  type Line,
  type PlainFrame,
  type Side,
  type StreamId,
  signalLine,
} from "./frame.js";
import { chunkEnd, maxChunkBytes } from "./payload.js";
import type { PipeSink, ResumableTransport } from "./pipe-format.js";

/** Frames, and bytes of them, after which an acknowledgement no longer waits. */
const framesUnacknowledged = 64;
const bytesUnacknowledged = 64 * 1024;
/** Milliseconds that it waits for more frames at most. */
const acknowledgementMs = 50;
/** Characters that may await acknowledgement; beyond that, data waits. */
const maxBufferedCharacters = 8 * 1024 * 1024;
/** Including frames that don't wait: a peer that sends without acknowledging would fill our memory. */
const maxUnacknowledgedCharacters = 4 * maxBufferedCharacters;

/** The other side has lost frames that it had acknowledged, or speaks another protocol: a new pipe doesn't help. */
export class TransportBroken extends Error {}

/** A frame is missing: it is sent again over the next pipe. */
export class FrameMissing extends Error {}

/**
 * A sequence of frames that survives its pipes: each is numbered, kept until the other side has acknowledged it, and
 * sent again over the next pipe.
 */
export class ReliableTransport implements ResumableTransport<string> {
  readonly #side: Side;
  readonly #deliver: (frame: Frame) => void;
  /** Lines that aren't acknowledged yet; the first one has the number `#acknowledged + 1`. */
  #journal: string[] = [];
  #kept = 0;
  #waiting: (() => void)[] = [];
  #acknowledged = 0;
  #received = 0;
  #sink: PipeSink<string> | undefined;
  #framesOwed = 0;
  #bytesOwed = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(side: Side, deliver: (frame: Frame) => void) {
    this.#side = side;
    this.#deliver = deliver;
  }

  /**
   * The number of frames that have arrived. A greeting contains it, so that the other side continues with the next one.
   */
  get received(): number {
    return this.#received;
  }

  /** Characters that are buffered. */
  get kept(): number {
    return this.#kept;
  }

  send(frame: PlainFrame): void {
    this.#append(frameLine(this.#side, this.#next(), frame));
  }

  /** @param bytes that fit into a frame. The sender has waited for `room`. */
  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    this.#append(dataLine(this.#side, this.#next(), channel, stream, bytes));
  }

  chunkEnd(bytes: Uint8Array, start: number, max: number): number {
    return chunkEnd(bytes, start, Math.min(maxChunkBytes, max));
  }

  /** Settles when there may be room for data; undefined if there is room. */
  room(): Promise<void> | undefined {
    if (this.#kept <= maxBufferedCharacters || this.#isClosed) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Continues over another pipe, from the first frame that the other side doesn't have.
   * @throws TransportBroken
   */
  attach(sink: PipeSink<string>, peerReceived: number): void {
    // May be lower than the acknowledged number: an older pipe can deliver a later acknowledgement sooner.
    this.acknowledged(peerReceived);
    this.#sink = sink;
    if (this.#journal.length > 0) sink.write(this.#journal.join(""));
    this.#acknowledge();
  }

  /** The pipe is lost. Later frames wait for the next one. */
  detach(sink: PipeSink<string>): void {
    if (this.#sink === sink) this.#sink = undefined;
  }

  /** @throws FrameMissing, TransportBroken */
  accept(line: Extract<Line, { kind: "frame" }>, length: number): void {
    if (line.number <= this.#received) return;
    if (line.number !== this.#received + 1) {
      throw new FrameMissing(`Frame ${line.number} came after ${this.#received}`);
    }
    if (this.#kept > maxUnacknowledgedCharacters)
      throw new TransportBroken("The peer sends no acknowledgements");
    this.#received = line.number;
    this.#framesOwed += 1;
    this.#bytesOwed += length;
    if (this.#framesOwed >= framesUnacknowledged || this.#bytesOwed >= bytesUnacknowledged) {
      this.#acknowledge();
    } else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#acknowledge(), acknowledgementMs);
      this.#timer.unref();
    }
    this.#deliver(line.frame);
  }

  /** @throws TransportBroken */
  acknowledged(received: number): void {
    if (received > this.#acknowledged + this.#journal.length) {
      throw new TransportBroken(`The peer acknowledges frame ${received}, which wasn't sent`);
    }
    this.#release(received);
  }

  /** Permanent: nothing is buffered any more, and all waits end. */
  close(): void {
    clearTimeout(this.#timer);
    this.#isClosed = true;
    this.#sink = undefined;
    this.#journal = [];
    this.#kept = 0;
    this.#wake();
  }

  #next(): number {
    return this.#acknowledged + this.#journal.length + 1;
  }

  #append(line: string): void {
    if (this.#isClosed) return;
    this.#journal.push(line);
    this.#kept += line.length;
    this.#sink?.write(line);
  }

  #release(received: number): void {
    const count = received - this.#acknowledged;
    if (count <= 0) return;
    for (const line of this.#journal.splice(0, count)) this.#kept -= line.length;
    this.#acknowledged = received;
    if (this.#kept <= maxBufferedCharacters) this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #acknowledge(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#framesOwed === 0 || this.#sink === undefined) return;
    this.#framesOwed = 0;
    this.#bytesOwed = 0;
    this.#sink.write(signalLine(this.#side, ["ack", this.#received]));
  }
}
