import { isUtf8 } from "node:buffer";

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

export type Line =
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
export type Payload = readonly [text: string] | readonly [base64: string, isBase64: 1];

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
