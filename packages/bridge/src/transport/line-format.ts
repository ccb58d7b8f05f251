import { type Frame, type PipeSignal, readLine, type Side, signalLine } from "./frame.js";
import { Lines } from "./lines.js";
import { maxLineLength } from "./payload.js";
import type { PipeEvent, PipeFormat, PipeReader } from "./pipe-format.js";
import { ReliableTransport } from "./reliable-transport.js";

/** Frames as lines of JSON, for platforms whose pipes carry text. */
export class LineFormat implements PipeFormat<string> {
  readonly #side: Side;
  readonly #deliver: (frame: Frame) => void;
  #transport: ReliableTransport;

  constructor(side: Side, deliver: (frame: Frame) => void) {
    this.#side = side;
    this.#deliver = deliver;
    this.#transport = new ReliableTransport(side, deliver);
  }

  get transport(): ReliableTransport {
    return this.#transport;
  }

  renew(): void {
    this.#transport.close();
    this.#transport = new ReliableTransport(this.#side, this.#deliver);
  }

  newReader(): PipeReader {
    const lines = new Lines(maxLineLength);
    return { push: (bytes) => lines.push(bytes).map((text) => this.#eventOf(text)) };
  }

  signal(signal: PipeSignal): string {
    return signalLine(this.#side, signal);
  }

  #eventOf(text: string): PipeEvent {
    const line = readLine(this.#side === "runner" ? "inside" : "runner", text);
    if (line.kind === "noise") return { kind: "noise", text: `${text}\n` };
    if (line.kind === "signal") return line;
    return { kind: "content", accept: () => this.#transport.accept(line, text.length) };
  }
}
