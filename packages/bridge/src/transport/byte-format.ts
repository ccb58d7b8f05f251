import type { ByteFrameListener } from "./byte-frames.js";
import { RecordReader, signalRecord } from "./byte-records.js";
import type { PipeSignal } from "./frame.js";
import type { PipeFormat, PipeReader } from "./pipe-format.js";
import { ReliableByteTransport } from "./reliable-byte-transport.js";

/** Frames as bytes, for platforms whose pipes carry any. */
export class ByteFormat implements PipeFormat<Uint8Array> {
  readonly #listener: Pick<ByteFrameListener, "frame" | "data">;
  #transport: ReliableByteTransport;

  constructor(listener: Pick<ByteFrameListener, "frame" | "data">) {
    this.#listener = listener;
    this.#transport = new ReliableByteTransport(listener);
  }

  get transport(): ReliableByteTransport {
    return this.#transport;
  }

  renew(): void {
    this.#transport.close();
    this.#transport = new ReliableByteTransport(this.#listener);
  }

  newReader(): PipeReader {
    return new RecordReader((offset, bytes) => this.#transport.accept(offset, bytes));
  }

  signal(value: PipeSignal): Uint8Array {
    return signalRecord(value);
  }
}
