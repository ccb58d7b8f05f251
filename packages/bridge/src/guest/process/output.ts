import type { Readable } from "node:stream";
import type { Channel } from "../../transport/channel.js";
import type { StreamId } from "../../transport/frame.js";

/** Milliseconds without output from a pipe whose process is gone, after which waiting for it ends. */
const idleMs = 500;

/** A process's whole output, at the pace of its reader. */
export class Output {
  readonly #source: Readable | null;
  readonly #done: Promise<void>;
  /** Whether it waits for the pipe, and not for the reader. */
  #isWaiting = true;
  #pieces = 0;

  constructor(source: Readable | null, channel: Channel, stream: StreamId) {
    this.#source = source;
    this.#done = this.#pour(channel, stream);
  }

  /** All that the process wrote, now that it is gone. A child that inherited the pipe may hold it open forever. */
  async drained(): Promise<void> {
    let pieces = -1;
    const watch = setInterval(() => {
      if (this.#isWaiting && pieces === this.#pieces) this.#source?.destroy();
      pieces = this.#pieces;
    }, idleMs);
    await this.#done;
    clearInterval(watch);
  }

  async #pour(channel: Channel, stream: StreamId): Promise<void> {
    try {
      for await (const bytes of this.#source ?? []) {
        this.#isWaiting = false;
        this.#pieces += 1;
        await channel.write(stream, bytes);
        this.#isWaiting = true;
      }
    } catch {
      // Given up above, or the pipe broke: either way this was all.
    }
    channel.end(stream);
  }
}
