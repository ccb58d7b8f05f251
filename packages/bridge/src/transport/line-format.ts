import { LineSplitter } from "@ambit/core/plugin";
import {
  chunkEnd,
  dataLine,
  type Frame,
  frameLine,
  maxChunkBytes,
  maxLineBytes,
  type PipeSignal,
  readLine,
  type Side,
  signalLine,
} from "./frame.js";
import type { PipeEvent, PipeFormat, PipeReader } from "./reliable-transport.js";
import { ReliableTransport, type SequenceCoding } from "./reliable-transport.js";

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
