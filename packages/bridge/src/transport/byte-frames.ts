import type { Frame, PlainFrame, StreamId } from "./frame.js";
import { TransportBroken } from "./transport.js";

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
const headerLength = 10;
const ops = ["data", "open", "end", "windowUpdate", "close", "hello", "ping", "pong"] as const;
type Op = (typeof ops)[number];

/** Bytes of a stream in one frame at most. */
const maxDataFrameBytes = 64 * 1024;
/** Bytes of any other payload: a kind's name, a number. */
const maxControlFrameBytes = 256;
const maxNumber = 0xffff_ffff;

/** Bytes up to this number are sent in one piece with their header: to copy them costs less than another write. */
export const copiedBytes = 4 * 1024;

/** Signals about the pipe itself. */
export type ByteSignal = "hello" | "ping" | "pong";

const none = Buffer.alloc(0);

/** Where a frame of data that begins at `start` ends: `max` bytes later, or before. */
export const dataChunkEnd = (bytes: Uint8Array, start: number, max: number): number =>
  Math.min(bytes.length, start + Math.min(max, maxDataFrameBytes));

/** @param bytes up to `dataChunkEnd`. */
export function dataPieces(channel: number, stream: StreamId, bytes: Uint8Array): readonly Uint8Array[] {
  return bytes.length <= copiedBytes
    ? [frameBytes("data", channel, stream, bytes)]
    : [header("data", channel, stream, bytes.length), bytes];
}

export function header(op: Op, channel: number, stream: StreamId, length: number): Buffer {
  return writeHeader(Buffer.allocUnsafe(headerLength), op, channel, stream, length);
}

/** Header and payload in one piece. */
function frameBytes(op: Op, channel: number, stream: StreamId, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headerLength + payload.length);
  bytes.set(payload, headerLength);
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

export interface ByteFrameListener {
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
    if (bytes.length - at < headerLength) return undefined;
    const length = bytes.readUInt32BE(at);
    const op = ops[bytes.readUInt8(at + 4)];
    const stream = bytes.readUInt8(at + 5);
    const channel = bytes.readUInt32BE(at + 6);
    if (op === undefined || (stream !== 0 && stream !== 1 && stream !== 2)) throw broken("an unknown frame");
    if (length > (op === "data" ? maxDataFrameBytes : maxControlFrameBytes))
      throw broken(`${length} bytes in one frame`);
    const start = at + headerLength;
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
