import type { PlainFrame, StreamId } from "./frame.js";

/** What channels travel over: frames in order, none lost for as long as the transport isn't. */
export interface Transport {
  send(frame: PlainFrame): void;
  /** @param bytes as many as `chunkEnd` allows. The sender has waited for `room`. */
  sendData(channel: number, stream: StreamId, bytes: Uint8Array): void;
  /** Settles when there may be room for data; undefined when there is. */
  room(): Promise<void> | undefined;
  /** Where a frame that begins at `start` ends: `max` bytes later, or before. */
  chunkEnd(bytes: Uint8Array, start: number, max: number): number;
}
