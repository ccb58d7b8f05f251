import {
  FrameMissing,
  type PipeSignal,
  type PipeSink,
  type PlainFrame,
  type StreamId,
  type Transport,
  TransportBroken,
} from "./frame.js";

/** What arrives on a pipe. */
export type PipeEvent =
  | { readonly kind: "signal"; readonly signal: PipeSignal }
  /** A frame, or a part of one. @throws FrameMissing, TransportBroken, or what a listener throws */
  | { readonly kind: "content"; accept(): void }
  /** Not of this protocol: an echo of our own line, a shell's message, or a truncated line. */
  | { readonly kind: "noise"; readonly text: string };

/** Reads one pipe, whose pieces may begin and end anywhere. */
export interface PipeReader {
  /** @throws TransportBroken for what isn't of this protocol and can't be skipped. */
  push(bytes: Uint8Array): readonly PipeEvent[];
}

/** How a transport appears on a pipe: as lines of text, or as bytes. */
export interface PipeFormat<Written> {
  readonly transport: ReliableTransport<Written>;
  /** Begins again with a new transport, for another owner: what was buffered for the earlier one is lost. */
  renew(): void;
  newReader(): PipeReader;
  signal(signal: PipeSignal): Written;
}

/** Characters of lines, or bytes, after which an acknowledgement no longer waits. */
const sizeUnacknowledged = 256 * 1024;
/** Milliseconds that an acknowledgement waits for more at most. */
const acknowledgementMs = 50;
/** What may await acknowledgement; beyond that, data waits. */
const maxBufferedSize = 8 * 1024 * 1024;
/** Including frames that don't wait: a peer that sends without acknowledging would fill our memory. */
const maxUnacknowledgedSize = 4 * maxBufferedSize;

/** How frames become pieces of a sequence, in which unit the sequence is counted, and how its pieces go over a pipe. */
export interface SequenceCoding<Piece> {
  /** Units of a piece: one where a piece is a frame, or its bytes. */
  unitsOf(piece: Piece): number;
  /** Characters or bytes of a piece. */
  sizeOf(piece: Piece): number;
  /** What of a piece follows its first units, which are fewer than all of them. */
  withoutFirst(piece: Piece, units: number): Piece;
  /** @param position units that come before the frame. */
  frame(frame: PlainFrame, position: number): Piece;
  data(channel: number, stream: StreamId, bytes: Uint8Array, position: number): readonly Piece[];
  chunkEnd(bytes: Uint8Array, start: number, max: number): number;
  write(sink: PipeSink<Piece>, piece: Piece, position: number): void;
  signal(signal: PipeSignal): Piece;
}

/**
 * A sequence that survives its pipes: its units are counted, kept until the other side has acknowledged them, and sent again
 * over the next pipe, from the first one that the other side doesn't have.
 */
export class ReliableTransport<Piece> implements Transport {
  readonly #coding: SequenceCoding<Piece>;
  /** Pieces that aren't acknowledged yet; the first of their units follows `#acknowledged` others. */
  #journal: Piece[] = [];
  #journalUnits = 0;
  #journalSize = 0;
  #waiting: (() => void)[] = [];
  #acknowledged = 0;
  #received = 0;
  #sink: PipeSink<Piece> | undefined;
  /** What has arrived since the last acknowledgement. */
  #sizeOwed = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(coding: SequenceCoding<Piece>) {
    this.#coding = coding;
  }

  /** The units that have arrived. A greeting contains their number, so that the other side continues after them. */
  get received(): number {
    return this.#received;
  }

  /** Characters or bytes that await acknowledgement. */
  get bufferedSize(): number {
    return this.#journalSize;
  }

  send(frame: PlainFrame): void {
    this.#append(this.#coding.frame(frame, this.#position));
  }

  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    for (const piece of this.#coding.data(channel, stream, bytes, this.#position)) this.#append(piece);
  }

  chunkEnd(bytes: Uint8Array, start: number, max: number): number {
    return this.#coding.chunkEnd(bytes, start, max);
  }

  room(): Promise<void> | undefined {
    if (this.#journalSize <= maxBufferedSize || this.#isClosed) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Continues over another pipe, after what the other side has received.
   * @throws TransportBroken
   */
  attach(sink: PipeSink<Piece>, peerReceived: number): void {
    // May be lower than the acknowledged number: an older pipe can deliver a later acknowledgement sooner.
    this.acknowledged(peerReceived);
    this.#sink = sink;
    let position = this.#acknowledged;
    for (const piece of this.#journal) {
      this.#coding.write(sink, piece, position);
      position += this.#coding.unitsOf(piece);
    }
    this.#acknowledge();
  }

  /** The pipe is lost. What is sent later waits for the next one. */
  detach(sink: PipeSink<Piece>): void {
    if (this.#sink === sink) this.#sink = undefined;
  }

  /**
   * Units of the other side's sequence have arrived.
   *
   * @param position how many come before them.
   * @param size their characters or bytes.
   * @returns how many of them are new: those before them came over an older pipe.
   * @throws FrameMissing, TransportBroken
   */
  arrived(position: number, units: number, size: number): number {
    const repeated = this.#received - position;
    if (repeated >= units) return 0;
    if (repeated < 0) throw new FrameMissing(`${position} came after ${this.#received}`);
    if (this.#journalSize > maxUnacknowledgedSize)
      throw new TransportBroken("The peer sends no acknowledgements");
    this.#received = position + units;
    this.#sizeOwed += size;
    if (this.#sizeOwed >= sizeUnacknowledged) this.#acknowledge();
    else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#acknowledge(), acknowledgementMs);
      this.#timer.unref();
    }
    return units - repeated;
  }

  /** @throws TransportBroken */
  acknowledged(received: number): void {
    if (received > this.#position)
      throw new TransportBroken(`The peer acknowledges ${received} of ${this.#position} that were sent`);
    let units = received - this.#acknowledged;
    if (units <= 0) return;
    this.#acknowledged = received;
    this.#journalUnits -= units;
    let wholePieces = 0;
    for (const piece of this.#journal) {
      const unitsOfPiece = this.#coding.unitsOf(piece);
      if (unitsOfPiece > units) break;
      units -= unitsOfPiece;
      this.#journalSize -= this.#coding.sizeOf(piece);
      wholePieces += 1;
    }
    this.#journal.splice(0, wholePieces);
    const [first] = this.#journal;
    if (first !== undefined && units > 0) {
      const remainder = this.#coding.withoutFirst(first, units);
      this.#journalSize += this.#coding.sizeOf(remainder) - this.#coding.sizeOf(first);
      this.#journal[0] = remainder;
    }
    if (this.#journalSize <= maxBufferedSize) this.#wake();
  }

  /** Permanent: nothing is buffered any more, and all waits end. */
  close(): void {
    clearTimeout(this.#timer);
    this.#isClosed = true;
    this.#sink = undefined;
    this.#journal = [];
    this.#journalUnits = 0;
    this.#journalSize = 0;
    this.#wake();
  }

  /** Units that come before the next piece. */
  get #position(): number {
    return this.#acknowledged + this.#journalUnits;
  }

  #append(piece: Piece): void {
    if (this.#isClosed) return;
    if (this.#sink !== undefined) this.#coding.write(this.#sink, piece, this.#position);
    this.#journal.push(piece);
    this.#journalUnits += this.#coding.unitsOf(piece);
    this.#journalSize += this.#coding.sizeOf(piece);
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #acknowledge(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#sizeOwed === 0 || this.#sink === undefined) return;
    this.#sizeOwed = 0;
    this.#sink.write(this.#coding.signal(["ack", this.#received]));
  }
}
