import { Channel, type ChannelListener } from "./channel.js";
import type { Frame, Side, StreamId } from "./frame.js";
import type { Transport } from "./transport.js";
import { GrowthBudget } from "./windows.js";

/**
 * Channels that the other side may have open, and bytes of one of its messages: limits what it can make this side
 * buffer. The runner, which doesn't trust the guest daemon, expects short replies and connections.
 */
const limits = {
  runner: { channels: 512, message: 64 * 1024 },
  inside: { channels: 4_096, message: 16 * 1024 * 1024 },
} as const;

/** Opens and finds the channels of one transport. */
export class Channels {
  readonly #transport: Transport;
  readonly #side: Side;
  readonly #accept: (kind: string, channel: Channel) => ChannelListener | undefined;
  readonly #open = new Map<number, Channel>();
  readonly #growth = new GrowthBudget();
  /** The number of those that the other side opened. */
  #theirs = 0;
  #next: number;
  #isClosed = false;

  /** @param accept returns the handlers for a channel that the other side opened; undefined: there is no such kind. */
  constructor(
    side: Side,
    transport: Transport,
    accept: (kind: string, channel: Channel) => ChannelListener | undefined,
  ) {
    this.#next = side === "runner" ? 1 : 2;
    this.#side = side;
    this.#transport = transport;
    this.#accept = accept;
  }

  open(kind: string, listener: (channel: Channel) => ChannelListener): Channel {
    const id = this.#next;
    this.#next += 2;
    const channel = this.#make(id);
    channel.listener = listener(channel);
    this.#transport.send(["open", id, kind]);
    // After the transport is lost there is no response: fail immediately instead of waiting.
    if (this.#isClosed) channel.closed();
    return channel;
  }

  /** @throws WindowExceeded, or what a listener throws: the other side broke the protocol. */
  deliver(frame: Frame): void {
    const [op, id] = frame;
    if (op !== "open") {
      this.#open.get(id)?.accept(frame);
      return;
    }
    if (this.#open.has(id) || id % 2 === this.#next % 2) throw new Error(`Channel ${id} can't be opened`);
    if (this.#theirs >= limits[this.#side].channels) {
      this.#transport.send(["close", id]);
      return;
    }
    this.#theirs += 1;
    const channel = this.#make(id, () => {
      this.#theirs -= 1;
    });
    const listener = this.#accept(frame[2], channel);
    if (listener === undefined) channel.close();
    else channel.listener = listener;
  }

  /** Data in the form of bytes. @throws as `deliver` */
  deliverData(channel: number, stream: StreamId, bytes: Uint8Array): void {
    this.#open.get(channel)?.arrived(stream, bytes);
  }

  closeAll(): void {
    this.#isClosed = true;
    for (const channel of [...this.#open.values()]) channel.closed();
  }

  #make(id: number, onClosed?: () => void): Channel {
    const channel = new Channel(id, limits[this.#side].message, this.#transport, this.#growth, () => {
      this.#open.delete(id);
      onClosed?.();
    });
    this.#open.set(id, channel);
    return channel;
  }
}
