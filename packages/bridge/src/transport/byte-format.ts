import type { Writable } from "node:stream";
import {
  type Frame,
  type PipeEvent,
  type PipeFormat,
  type PipeReader,
  type PipeSignal,
  type PlainFrame,
  ReliableTransport,
  readSignal,
  type SequenceCoding,
  type StreamId,
  type Transport,
  TransportBroken,
} from "./transport.js";

/**
 * Frames for a pipe that carries any bytes: a header of ten, then the payload.
 *
 * | bytes | |
 * |---|---|
 * | 0–3 | length of the payload, big endian |
 * | 4 | the operation, by its index in `ops` |
 * | 5 | stream |
 * | 6–9 | channel, big endian |
 */
const frameHeaderLength = 10;
const ops = ["data", "open", "end", "windowUpdate", "close", "hello", "ping", "pong"] as const;
type Op = (typeof ops)[number];

/** Bytes of a stream in one frame at most. */
const maxDataFrameBytes = 64 * 1024;
/** Bytes of any other payload: a kind's name, a number. */
const maxControlFrameBytes = 256;
const maxNumber = 0xffff_ffff;

/** Bytes up to this number are sent in one piece with their header: to copy them costs less than another write. */
const copiedBytes = 4 * 1024;

/** Signals about the pipe itself. */
export type ByteSignal = "hello" | "ping" | "pong";

const none = Buffer.alloc(0);

/** Where a frame of data that begins at `start` ends: `max` bytes later, or before. */
const dataChunkEnd = (bytes: Uint8Array, start: number, max: number): number =>
  Math.min(bytes.length, start + Math.min(max, maxDataFrameBytes));

/** @param bytes up to `dataChunkEnd`. */
function dataPieces(channel: number, stream: StreamId, bytes: Uint8Array): readonly Uint8Array[] {
  return bytes.length <= copiedBytes
    ? [frameBytes("data", channel, stream, bytes)]
    : [header("data", channel, stream, bytes.length), bytes];
}

export function header(op: Op, channel: number, stream: StreamId, length: number): Buffer {
  return writeHeader(Buffer.allocUnsafe(frameHeaderLength), op, channel, stream, length);
}

/** Header and payload in one piece. */
function frameBytes(op: Op, channel: number, stream: StreamId, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeaderLength + payload.length);
  bytes.set(payload, frameHeaderLength);
  return writeHeader(bytes, op, channel, stream, payload.length);
}

function writeHeader(bytes: Buffer, op: Op, channel: number, stream: StreamId, length: number): Buffer {
  bytes.writeUInt32BE(length, 0);
  bytes[4] = ops.indexOf(op);
  bytes[5] = stream;
  bytes.writeUInt32BE(channel, 6);
  return bytes;
}

/** A frame other than data, or a signal with its number. */
export function plainBytes(frame: PlainFrame | readonly [op: ByteSignal, value: number]): Buffer {
  switch (frame[0]) {
    case "open":
      return frameBytes("open", frame[1], 0, Buffer.from(frame[2], "utf8"));
    case "end":
      return header("end", frame[1], frame[2], 0);
    case "windowUpdate":
      return frameBytes("windowUpdate", frame[1], frame[2], numberBytes(frame[3]));
    case "close":
      return header("close", frame[1], 0, 0);
    default:
      return frameBytes(frame[0], 0, 0, numberBytes(frame[1]));
  }
}

function numberBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(Math.min(value, maxNumber), 0);
  return bytes;
}

interface ByteFrameListener {
  frame(frame: Frame): void;
  /** Data as it arrives: a frame may be delivered in pieces. */
  data(channel: number, stream: StreamId, bytes: Uint8Array): void;
  signal(op: ByteSignal, value: number): void;
}

/** Splits the input into frames. Buffers a header or a short payload at most; data is passed on as it arrives. */
export class ByteFrames {
  readonly #listener: ByteFrameListener;
  #rest: Buffer = none;
  /** The remaining bytes of the current data frame. */
  #remaining = 0;
  #channel = 0;
  #stream: StreamId = 0;

  constructor(listener: ByteFrameListener) {
    this.#listener = listener;
  }

  /** @throws TransportBroken for what is no frame, or what a listener throws. */
  push(piece: Uint8Array): void {
    let bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    if (this.#rest.length > 0) bytes = Buffer.concat([this.#rest, bytes]);
    this.#rest = none;
    let at = 0;
    while (at < bytes.length) {
      if (this.#remaining > 0) {
        const end = Math.min(bytes.length, at + this.#remaining);
        this.#remaining -= end - at;
        this.#listener.data(this.#channel, this.#stream, bytes.subarray(at, end));
        at = end;
        continue;
      }
      const next = this.#plain(bytes, at);
      if (next === undefined) {
        // Copied, so that it doesn't keep the whole piece.
        this.#rest = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** Reads a header, and the payload of anything but data. Undefined: it isn't complete yet. */
  #plain(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < frameHeaderLength) return undefined;
    const length = bytes.readUInt32BE(at);
    const op = ops[bytes.readUInt8(at + 4)];
    const stream = bytes.readUInt8(at + 5);
    const channel = bytes.readUInt32BE(at + 6);
    if (op === undefined || (stream !== 0 && stream !== 1 && stream !== 2)) throw broken("an unknown frame");
    if (length > (op === "data" ? maxDataFrameBytes : maxControlFrameBytes))
      throw broken(`${length} bytes in one frame`);
    const start = at + frameHeaderLength;
    if (op === "data") {
      [this.#remaining, this.#channel, this.#stream] = [length, channel, stream];
      return start;
    }
    if (bytes.length - start < length) return undefined;
    const payload = bytes.subarray(start, start + length);
    this.#deliver(op, channel, stream, payload);
    return start + length;
  }

  #deliver(op: Exclude<Op, "data">, channel: number, stream: StreamId, payload: Buffer): void {
    const frame = plainFrame(op, channel, stream, payload);
    if (frame !== undefined) this.#listener.frame(frame);
    else if (op === "hello" || op === "ping" || op === "pong") this.#listener.signal(op, numberOf(payload));
  }
}

/** Undefined for a signal. */
function plainFrame(op: Op, channel: number, stream: StreamId, payload: Buffer): PlainFrame | undefined {
  switch (op) {
    case "open":
      return ["open", channel, payload.toString("utf8")];
    case "end":
      return ["end", channel, stream];
    case "windowUpdate":
      return ["windowUpdate", channel, stream, numberOf(payload)];
    case "close":
      return ["close", channel];
    default:
      return undefined;
  }
}

function numberOf(payload: Buffer): number {
  if (payload.length !== 4) throw broken("a number that isn't one");
  return payload.readUInt32BE(0);
}

function broken(what: string): TransportBroken {
  return new TransportBroken(`The peer sent ${what}`);
}

/** What each side writes to a pipe first. Whatever comes before it, such as a shell's message, is noise. */
export const preamble: Uint8Array = new TextEncoder().encode("\0ambit bytes\0");

/**
 * A pipe's records: a header, then the payload.
 *
 * | bytes | |
 * |---|---|
 * | 0 | 0: a part of the transport's bytes · 1: a signal, as JSON |
 * | 1–3 | length of the payload, big endian |
 * | 4–9 | for a part: how many bytes of the transport come before it, big endian |
 */
const recordHeaderLength = 4;
const contentHeaderLength = 10;
const [content, signal] = [0, 1] as const;
const maxContentBytes = 128 * 1024;
const maxSignalBytes = 1024;
/** Bytes before the preamble that are skipped. */
const maxNoiseBytes = 64 * 1024;

/** The header of a record with the transport's bytes, which follow it. @param offset of the first of them. */
function contentHeader(offset: number, length: number): Buffer {
  return writeContentHeader(Buffer.allocUnsafe(contentHeaderLength), offset, length);
}

export function contentRecord(offset: number, bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(contentHeaderLength + bytes.length);
  whole.set(bytes, contentHeaderLength);
  return writeContentHeader(whole, offset, bytes.length);
}

function writeContentHeader(bytes: Buffer, offset: number, length: number): Buffer {
  bytes[0] = content;
  bytes.writeUIntBE(length, 1, 3);
  bytes.writeUIntBE(offset, recordHeaderLength, 6);
  return bytes;
}

export function signalRecord(value: PipeSignal): Buffer {
  const payload = Buffer.from(JSON.stringify(value), "utf8");
  const header = Buffer.allocUnsafe(recordHeaderLength);
  header[0] = signal;
  header.writeUIntBE(payload.length, 1, 3);
  return Buffer.concat([header, payload]);
}

/** Splits a pipe into records. Buffers a header or a signal at most; content is passed on as it arrives. */
class RecordReader implements PipeReader {
  readonly #accept: (offset: number, bytes: Uint8Array) => void;
  #rest: Buffer = none;
  #hasBegun = false;
  #skipped = 0;
  /** The remaining bytes of the current record with content. */
  #remaining = 0;
  /** Of the next of them. */
  #offset = 0;

  constructor(accept: (offset: number, bytes: Uint8Array) => void) {
    this.#accept = accept;
  }

  push(piece: Uint8Array): readonly PipeEvent[] {
    let bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    if (this.#rest.length > 0) bytes = Buffer.concat([this.#rest, bytes]);
    this.#rest = none;
    const events: PipeEvent[] = [];
    let at = this.#hasBegun ? 0 : this.#begin(bytes, events);
    while (at < bytes.length) {
      const next = this.#next(bytes, at, events);
      if (next === undefined) {
        // Copied, so that it doesn't keep the whole piece.
        this.#rest = Buffer.from(bytes.subarray(at));
        break;
      }
      at = next;
    }
    return events;
  }

  /** @returns where the first record begins. */
  #begin(bytes: Buffer, events: PipeEvent[]): number {
    const preambleStart = bytes.indexOf(preamble);
    // It may have begun at the end of this piece.
    const end = preambleStart === -1 ? Math.max(0, bytes.length - preamble.length + 1) : preambleStart;
    if (end > 0) events.push({ kind: "noise", text: bytes.toString("utf8", 0, end) });
    this.#skipped += end;
    if (this.#skipped > maxNoiseBytes) throw new TransportBroken("The peer sent something else");
    if (preambleStart !== -1) {
      this.#hasBegun = true;
      return preambleStart + preamble.length;
    }
    this.#rest = Buffer.from(bytes.subarray(end));
    return bytes.length;
  }

  /** @returns where the next record, or the rest of this one, begins. Undefined: it isn't complete yet. */
  #next(bytes: Buffer, at: number, events: PipeEvent[]): number | undefined {
    if (this.#remaining > 0) {
      const end = Math.min(bytes.length, at + this.#remaining);
      const part = bytes.subarray(at, end);
      const offset = this.#offset;
      this.#remaining -= part.length;
      this.#offset += part.length;
      events.push({ kind: "content", accept: () => this.#accept(offset, part) });
      return end;
    }
    if (bytes.length - at < recordHeaderLength) return undefined;
    const type = bytes.readUInt8(at);
    const length = bytes.readUIntBE(at + 1, 3);
    const start = at + recordHeaderLength;
    if (type === content && length <= maxContentBytes) {
      if (bytes.length - at < contentHeaderLength) return undefined;
      this.#remaining = length;
      this.#offset = bytes.readUIntBE(start, 6);
      return at + contentHeaderLength;
    }
    if (type !== signal || length > maxSignalBytes) throw new TransportBroken("The peer sent no record");
    if (bytes.length - start < length) return undefined;
    const pipeSignal = readSignal(bytes.toString("utf8", start, start + length));
    if (pipeSignal === undefined) throw new TransportBroken("The peer sent an unknown signal");
    events.push({ kind: "signal", signal: pipeSignal });
    return start + length;
  }
}

/** Frames as one sequence of bytes, for platforms whose pipes carry any. A pipe may be cut anywhere, even within a frame. */
export class ByteFormat implements PipeFormat<Uint8Array> {
  readonly #listener: ByteFrameListener;
  #transport = new ReliableTransport(coding);
  #frames: ByteFrames;

  constructor(listener: Pick<ByteFrameListener, "frame" | "data">) {
    const signal = () => {
      throw new TransportBroken("The peer sent a signal as a frame");
    };
    this.#listener = { ...listener, signal };
    this.#frames = new ByteFrames(this.#listener);
  }

  get transport(): ReliableTransport<Uint8Array> {
    return this.#transport;
  }

  renew(): void {
    this.#transport.close();
    this.#transport = new ReliableTransport(coding);
    this.#frames = new ByteFrames(this.#listener);
  }

  newReader(): PipeReader {
    return new RecordReader((offset, bytes) => this.accept(offset, bytes));
  }

  signal(value: PipeSignal): Uint8Array {
    return signalRecord(value);
  }

  /**
   * @param offset bytes of the sequence that come before these.
   * @throws FrameMissing, TransportBroken, or what the listener throws.
   */
  accept(offset: number, bytes: Uint8Array): void {
    const further = this.#transport.arrived(offset, bytes.length, bytes.length);
    if (further > 0) this.#frames.push(bytes.subarray(bytes.length - further));
  }
}

const coding: SequenceCoding<Uint8Array> = {
  unitsOf: ({ length }) => length,
  sizeOf: ({ length }) => length,
  withoutFirst: (bytes, units) => bytes.subarray(units),
  frame: plainBytes,
  data: dataPieces,
  chunkEnd: dataChunkEnd,
  write(sink, bytes, offset) {
    if (bytes.length <= copiedBytes) return sink.write(contentRecord(offset, bytes));
    sink.write(contentHeader(offset, bytes.length));
    sink.write(bytes);
  },
  signal: signalRecord,
};

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
