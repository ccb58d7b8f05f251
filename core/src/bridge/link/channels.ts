import { Channel, type ChannelListener } from "./channel.js";
import type { Frame, Side } from "./frame.js";

/** Open at once, on one link. */
const mostChannels = 4_096;

/** Opens and finds the channels of one link. */
export class Channels {
  readonly #send: (frame: Frame) => void;
  readonly #accept: (kind: string, channel: Channel) => ChannelListener | undefined;
  readonly #open = new Map<number, Channel>();
  #next: number;
  #isClosed = false;

  /** @param accept what hears a channel that the other side opened; undefined: there is no such kind. */
  constructor(
    side: Side,
    send: (frame: Frame) => void,
    accept: (kind: string, channel: Channel) => ChannelListener | undefined,
  ) {
    this.#next = side === "runner" ? 1 : 2;
    this.#send = send;
    this.#accept = accept;
  }

  open(kind: string, listener: (channel: Channel) => ChannelListener): Channel {
    const id = this.#next;
    this.#next += 2;
    const channel = this.#make(id);
    channel.listener = listener(channel);
    this.#send(["open", id, kind]);
    // After the link is lost nothing answers: better told at once than waited for.
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
    const channel = this.#make(id);
    const listener = this.#open.size > mostChannels ? undefined : this.#accept(frame[2], channel);
    if (listener === undefined) channel.close();
    else channel.listener = listener;
  }

  closeAll(): void {
    this.#isClosed = true;
    for (const channel of [...this.#open.values()]) channel.closed();
  }

  #make(id: number): Channel {
    const channel = new Channel(id, this.#send, () => this.#open.delete(id));
    this.#open.set(id, channel);
    return channel;
  }
}
