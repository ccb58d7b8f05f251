import type { PlainFrame, StreamId } from "./frame.js";

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
