/** Frames between the runner and the guest daemon, and how they arrive whole and in order over pipes that break. */

import { isUtf8 } from "node:buffer";
import { LineSplitter } from "@ambit/core/plugin";

/** The streams of one channel. Messages are lines of JSON on a stream of their own. */
export const streams = { main: 0, error: 1, messages: 2 } as const;
export type StreamId = (typeof streams)[keyof typeof streams];

/** Frames, which are numbered and acknowledged. `channel` numbers are odd when the runner opened it, else even. */
export type Frame =
  | readonly [op: "open", channel: number, kind: string]
  | readonly [op: "data", channel: number, stream: StreamId, ...payload: Payload]
  | readonly [op: "end", channel: number, stream: StreamId]
  /** The reader took this many bytes: the writer may send as many more. */
  | readonly [op: "windowUpdate", channel: number, stream: StreamId, bytes: number]
  | readonly [op: "close", channel: number];

/** Signals about the pipe itself, without numbers. */
export type PipeSignal =
  /** `fence` of the runner: increases with each owner of the sandbox. Default 0. */
  | readonly [op: "hello", version: number, key: string, attempt: number, received: number, fence?: number]
  | readonly [op: "ack", received: number]
  | readonly [op: "ping"]
  | readonly [op: "pong"]
  /** The guest daemon has been killed: its streams are lost. */
  | readonly [op: "dead"]
  /** Another owner, with a higher fence, has the sandbox. */
  | readonly [op: "fenced"];

export type Side = "runner" | "inside";

/**
 * Each side's lines begin differently, so that our own lines, echoed by a terminal or a log, are recognised and
 * dropped.
 */
const marks: Readonly<Record<Side, string>> = { runner: ">", inside: "<" };

/** All frames but data, which has a separate form for speed. */
export type PlainFrame = Exclude<Frame, readonly ["data", ...unknown[]]>;

export function frameLine(side: Side, number: number, frame: PlainFrame): string {
  return `${JSON.stringify([marks[side], number, ...frame])}\n`;
}

/** @param bytes at most `maxChunkBytes` of them. */
export function dataLine(
  side: Side,
  number: number,
  channel: number,
  stream: StreamId,
  bytes: Uint8Array,
): string {
  return `["${marks[side]}",${number},"data",${channel},${stream},${payloadJson(bytes)}]\n`;
}

export function signalLine(side: Side, signal: PipeSignal): string {
  return `${JSON.stringify([marks[side], 0, ...signal])}\n`;
}

type Line =
  | { readonly kind: "frame"; readonly number: number; readonly frame: Frame }
  | { readonly kind: "signal"; readonly signal: PipeSignal }
  /** Not of this protocol: an echo of our own line, a shell's message, or a truncated line. */
  | { readonly kind: "noise" };

/** Reads a line of the other side. Anything that isn't exactly a frame or a signal is noise. */
export function readLine(from: Side, text: string): Line {
  const noise: Line = { kind: "noise" };
  if (!text.startsWith(`["${marks[from]}",`)) return noise;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return noise;
  }
  if (!Array.isArray(parsed)) return noise;
  const [, number, ...fields]: unknown[] = parsed;
  if (!isCount(number)) return noise;
  if (number === 0) return isSignal(fields) ? { kind: "signal", signal: fields } : noise;
  return isFrame(fields) ? { kind: "frame", number, frame: fields } : noise;
}

/** Reads a signal in JSON. Undefined: it is none. */
export function readSignal(text: string): PipeSignal | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) && isSignal(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isSignal(parts: readonly unknown[]): parts is PipeSignal {
  const [op, first, key, attempt, received, fence = 0] = parts;
  switch (op) {
    case "hello":
      return [first, attempt, received, fence].every(isCount) && typeof key === "string";
    case "ack":
      return isCount(first);
    case "ping":
    case "pong":
    case "dead":
    case "fenced":
      return true;
    default:
      return false;
  }
}

function isFrame(parts: readonly unknown[]): parts is Frame {
  const [op, channel, third, content, isBase64] = parts;
  if (!isCount(channel)) return false;
  switch (op) {
    case "open":
      return typeof third === "string";
    case "data":
      return isStreamId(third) && typeof content === "string" && (isBase64 === undefined || isBase64 === 1);
    case "end":
      return isStreamId(third);
    case "windowUpdate":
      return isStreamId(third) && isCount(content);
    case "close":
      return true;
    default:
      return false;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isStreamId(value: unknown): value is StreamId {
  return value === 0 || value === 1 || value === 2;
}

/** Bytes of a stream in one frame at most: as base64 they make a line of 15,020 characters, and a pipe takes 16,384. */
export const maxChunkBytes = 11_264;
/** Bytes of a line. Longer ones are noise. */
export const maxLineBytes = 16_384;
/** Bytes of a text as JSON in a line. */
const maxTextBytes = 15_800;

/** Text if possible, since that adds no overhead; otherwise base64 with a marker. */
type Payload = readonly [text: string] | readonly [base64: string, isBase64: 1];

/**
 * A payload's items as JSON, created once, since their length determines the form.
 * @param bytes at most `maxChunkBytes` of them.
 */
function payloadJson(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer) && !buffer.includes(0)) {
    const json = JSON.stringify(buffer.toString("utf8"));
    if (Buffer.byteLength(json) <= maxTextBytes) return json;
  }
  return `"${buffer.toString("base64")}",1`;
}

export function decodePayload([content, isBase64]: Payload): Uint8Array {
  return Buffer.from(content, isBase64 === 1 ? "base64" : "utf8");
}

/** Where the next chunk ends: not within a character, so that text stays text. */
export function chunkEnd(bytes: Uint8Array, start: number, max: number): number {
  const end = start + max;
  if (end >= bytes.length) return bytes.length;
  for (let back = 0; back < 4 && end - back > start; back++) {
    // 10xxxxxx continues a character.
    if (((bytes[end - back] ?? 0) & 0xc0) !== 0x80) return end - back;
  }
  return end;
}

/** Carries channels: frames in order, without loss as long as the transport exists. */
export interface Transport {
  send(frame: PlainFrame): void;
  /** @param bytes up to `chunkEnd`. The sender has waited for `room`. */
  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void;
  /** Settles when there may be room for data; undefined if there is room. */
  room(): Promise<void> | undefined;
  /** Where a frame that begins at `start` ends: `max` bytes later, or before. */
  chunkEnd(bytes: Uint8Array, start: number, max: number): number;
}

/** The current destination of what a transport sends. Takes it at once and keeps its order. */
export interface PipeSink<Written> {
  write(written: Written): void;
}

/** The other side has lost frames that it had acknowledged, or speaks another protocol: a new pipe doesn't help. */
export class TransportBroken extends Error {}

/** A frame is missing: it is sent again over the next pipe. */
export class FrameMissing extends Error {}

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

/** Frames as lines of JSON, for platforms whose pipes carry text. */
export class LineFormat implements PipeFormat<string> {
  readonly #side: Side;
  readonly #deliver: (frame: Frame) => void;
  #transport: ReliableTransport<string>;

  constructor(side: Side, deliver: (frame: Frame) => void) {
    this.#side = side;
    this.#deliver = deliver;
    this.#transport = new ReliableTransport(codingOf(side));
  }

  get transport(): ReliableTransport<string> {
    return this.#transport;
  }

  renew(): void {
    this.#transport.close();
    this.#transport = new ReliableTransport(codingOf(this.#side));
  }

  newReader(): PipeReader {
    const lines = new LineSplitter({
      maxBytes: maxLineBytes,
      standIn: (characters) => `[a line of ${characters} characters]`,
    });
    // A terminal on the way ends its lines with a carriage return too.
    return { push: (bytes) => [...lines.push(bytes)].map((line) => this.#eventOf(line.replace(/\r$/, ""))) };
  }

  signal(signal: PipeSignal): string {
    return signalLine(this.#side, signal);
  }

  /** A frame with its number, which begins at 1. @throws FrameMissing, TransportBroken, or what a listener throws */
  accept(number: number, frame: Frame, characters: number): void {
    if (this.#transport.arrived(number - 1, 1, characters) > 0) this.#deliver(frame);
  }

  #eventOf(text: string): PipeEvent {
    const line = readLine(this.#side === "runner" ? "inside" : "runner", text);
    if (line.kind === "noise") return { kind: "noise", text: `${text}\n` };
    if (line.kind === "signal") return line;
    return { kind: "content", accept: () => this.accept(line.number, line.frame, text.length) };
  }
}

/** A frame is one line, and one unit: its number is in it. */
const codingOf = (side: Side): SequenceCoding<string> => ({
  unitsOf: () => 1,
  sizeOf: ({ length }) => length,
  withoutFirst: (line) => line,
  frame: (frame, position) => frameLine(side, position + 1, frame),
  data: (channel, stream, bytes, position) => [dataLine(side, position + 1, channel, stream, bytes)],
  chunkEnd: (bytes, start, max) => chunkEnd(bytes, start, Math.min(maxChunkBytes, max)),
  write: (sink, line) => sink.write(line),
  signal: (signal) => signalLine(side, signal),
});
