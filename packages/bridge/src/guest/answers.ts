import type { Readable } from "node:stream";
import { messageOf } from "@ambit/core/plugin";
import type { Channel } from "../transport/channels.js";
import type { StreamId } from "../transport/frame.js";

/** Executes a channel's request; a failure becomes the reply. */
export function replyWithFailure(channel: Channel, work: () => Promise<void>): void {
  work().catch((error: unknown) => channel.send({ refused: messageOf(error) }));
}

/** Sends a whole source on a channel, at the pace of its reader. */
export class OutputPump {
  readonly #source: Readable;
  readonly #channel: Channel;
  readonly #stream: StreamId;
  /** The pending write of the last piece. */
  #wait: Promise<void> | undefined;
  #pieces = 0;

  constructor(source: Readable, channel: Channel, stream: StreamId) {
    this.#source = source;
    this.#channel = channel;
    this.#stream = stream;
    source.on("data", (bytes: Buffer) => this.#send(bytes));
  }

  /** Pieces received so far. */
  get pieces(): number {
    return this.#pieces;
  }

  /** Whether it waits for the source rather than the reader. */
  get isIdle(): boolean {
    return this.#wait === undefined;
  }

  /** Settles when everything that arrived has been sent. */
  async sent(): Promise<void> {
    while (this.#wait !== undefined) await this.#wait;
  }

  #send(bytes: Buffer): void {
    this.#pieces += 1;
    const write = () => this.#channel.write(this.#stream, bytes);
    // Node resumes a child's streams when it exits: what arrives then is queued.
    const wait = this.#wait === undefined ? write() : this.#wait.then(write);
    if (wait === undefined) return;
    this.#wait = wait;
    this.#source.pause();
    void wait.then(() => {
      if (this.#wait !== wait) return;
      this.#wait = undefined;
      this.#source.resume();
    });
  }
}
