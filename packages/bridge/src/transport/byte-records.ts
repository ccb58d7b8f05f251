import { type PipeSignal, readSignal } from "./frame.js";
import type { PipeEvent, PipeReader } from "./pipe-format.js";
import { TransportBroken } from "./transport.js";

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
const headerLength = 4;
const contentHeaderLength = 10;
const [content, signal] = [0, 1] as const;
const maxContentBytes = 128 * 1024;
const maxSignalBytes = 1024;
/** Bytes before the preamble that are skipped. */
const maxNoiseBytes = 64 * 1024;

const none = Buffer.alloc(0);

/** The header of a record with the transport's bytes, which follow it. @param offset of the first of them. */
export function contentHeader(offset: number, length: number): Buffer {
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
  bytes.writeUIntBE(offset, headerLength, 6);
  return bytes;
}

export function signalRecord(value: PipeSignal): Buffer {
  const payload = Buffer.from(JSON.stringify(value), "utf8");
  const header = Buffer.allocUnsafe(headerLength);
  header[0] = signal;
  header.writeUIntBE(payload.length, 1, 3);
  return Buffer.concat([header, payload]);
}

/** Splits a pipe into records. Buffers a header or a signal at most; content is passed on as it arrives. */
export class RecordReader implements PipeReader {
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
    const found = bytes.indexOf(preamble);
    // It may have begun at the end of this piece.
    const end = found === -1 ? Math.max(0, bytes.length - preamble.length + 1) : found;
    if (end > 0) events.push({ kind: "noise", text: bytes.toString("utf8", 0, end) });
    this.#skipped += end;
    if (this.#skipped > maxNoiseBytes) throw new TransportBroken("The peer sent something else");
    if (found !== -1) {
      this.#hasBegun = true;
      return found + preamble.length;
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
    if (bytes.length - at < headerLength) return undefined;
    const type = bytes.readUInt8(at);
    const length = bytes.readUIntBE(at + 1, 3);
    const start = at + headerLength;
    if (type === content && length <= maxContentBytes) {
      if (bytes.length - at < contentHeaderLength) return undefined;
      this.#remaining = length;
      this.#offset = bytes.readUIntBE(start, 6);
      return at + contentHeaderLength;
    }
    if (type !== signal || length > maxSignalBytes) throw new TransportBroken("The peer sent no record");
    if (bytes.length - start < length) return undefined;
    const found = readSignal(bytes.toString("utf8", start, start + length));
    if (found === undefined) throw new TransportBroken("The peer sent an unknown signal");
    events.push({ kind: "signal", signal: found });
    return start + length;
  }
}
