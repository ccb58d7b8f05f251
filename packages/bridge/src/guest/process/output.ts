import type { Readable } from "node:stream";
import type { Channel } from "../../transport/channel.js";
import type { StreamId } from "../../transport/frame.js";
import { OutputPump } from "../output-pump.js";

/** Milliseconds without output after which a pipe of an ended process is abandoned. */
const idleMs = 500;

/** Sends a process's whole output, at the pace of its reader. */
export class Output {
  readonly #source: Readable;
  readonly #outputPump: OutputPump;
  readonly #done: Promise<void>;

  constructor(source: Readable, channel: Channel, stream: StreamId) {
    this.#source = source;
    this.#outputPump = new OutputPump(source, channel, stream);
    this.#done = this.#end(channel, stream);
  }

  /** Everything that the process wrote before its end. A child that inherited the pipe may hold it open forever. */
  async drained(): Promise<void> {
    let pieces = -1;
    const watch = setInterval(() => {
      if (this.#outputPump.isIdle && pieces === this.#outputPump.pieces) this.#source.destroy();
      pieces = this.#outputPump.pieces;
    }, idleMs);
    await this.#done;
    clearInterval(watch);
  }

  async #end(channel: Channel, stream: StreamId): Promise<void> {
    await new Promise<void>((resolve) => {
      // Abandoned above, or the pipe broke: in both cases the output is complete.
      this.#source.on("error", () => undefined);
      for (const over of ["end", "close"]) this.#source.once(over, resolve);
    });
    await this.#outputPump.sent();
    channel.end(stream);
  }
}
