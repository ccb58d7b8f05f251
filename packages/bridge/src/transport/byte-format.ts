import {
  type ByteFrameListener,
  ByteFrames,
  copiedBytes,
  dataChunkEnd,
  dataPieces,
  plainBytes,
} from "./byte-frames.js";
import { contentHeader, contentRecord, RecordReader, signalRecord } from "./byte-records.js";
import type { PipeSignal } from "./frame.js";
import type { PipeFormat, PipeReader } from "./pipe-format.js";
import { ReliableTransport, type SequenceCoding } from "./reliable-transport.js";
import { TransportBroken } from "./transport.js";

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
