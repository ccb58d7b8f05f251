import type { Readable } from "node:stream";
import { parseBoundedJson } from "@ambit/core/contract";
import { LineSplitter, messageOf } from "@ambit/core/plugin";
import { decodePayload, type Frame, type Side, type StreamId, streams, type Transport } from "./transport.js";

/** Bytes of a stream that may be in flight at first, and so the most that is buffered for a reader that never reads. */
export const firstWindow = 512 * 1024;
/** The same of a stream whose reader keeps up. */
export const largestWindow = 2 * 1024 * 1024;
/** Bytes by which all windows of one transport may have grown together. */
const maxGrowth = 8 * 1024 * 1024;

/** The largest window that the other side can have after so many bytes were sent to it, whatever it says. */
function windowAfter(sent: number): number {
  return Math.min(largestWindow, Math.max(firstWindow, 2 * sent));
}

/** What windows may still grow by: a limit for all streams of a transport, whatever the other side opens. */
export class GrowthBudget {
  #left = maxGrowth;

  /** @returns how much of it is granted. */
  take(wanted: number): number {
    const granted = Math.min(wanted, this.#left);
    this.#left -= granted;
    return granted;
  }

  giveBack(granted: number): void {
    this.#left += granted;
  }
}

/** How much the other side may send on one stream, and what of it has been processed. */
export class ReceiveWindow {
  readonly #budget: GrowthBudget;
  #size = firstWindow;
  #untaken = 0;
  #owed = 0;
  #passed = 0;

  constructor(budget: GrowthBudget) {
    this.#budget = budget;
  }

  /** @returns false: more than the window allows. */
  arrived(bytes: number): boolean {
    if (this.#untaken + bytes > this.#size) return false;
    this.#untaken += bytes;
    return true;
  }

  /**
   * The reader has processed that many. Where the way is long, a window limits what a pipe carries: it grows with a reader that
   * has taken a whole one, to twice what it has taken at most.
   *
   * @returns how many more the other side is to be allowed now, if it is to be told.
   */
  taken(bytes: number): number | undefined {
    this.#untaken -= bytes;
    this.#owed += bytes;
    this.#passed += bytes;
    if (this.#owed < this.#size / 4) return undefined;
    let allowed = this.#owed;
    this.#owed = 0;
    if (this.#passed >= this.#size && this.#size < largestWindow) {
      const growth = this.#budget.take(Math.min(this.#size, largestWindow - this.#size));
      this.#size += growth;
      allowed += growth;
    }
    return allowed;
  }

  /** No more arrives. */
  close(): void {
    this.#budget.giveBack(this.#size - firstWindow);
    this.#size = firstWindow;
  }
}

export type Taken = (count?: number) => void;

/** The handlers of a channel's owner. Without a handler, what arrives is dropped. */
export interface ChannelListener {
  message?(message: unknown): void;
  /**
   * @param taken to be called once the bytes have been processed: the writer may then send as many more. With a number, it says
   * so of that many, also of others of the stream.
   */
  data?(stream: StreamId, bytes: Uint8Array, taken: Taken): void;
  end?(stream: StreamId): void;
  /** Called once, when either side has closed it, or the transport is lost. */
  closed?(): void;
}

/** The other side exceeded its window. */
class WindowExceeded extends Error {}

interface Outgoing {
  credit: number;
  /** Bytes so far. */
  sent: number;
  wake: (() => void) | undefined;
}

/** A write in progress. */
interface Writing {
  readonly outgoing: Outgoing;
  readonly stream: StreamId;
  readonly bytes: Uint8Array;
  /** Bytes of `bytes` sent so far. */
  sent: number;
}

/** One value per stream, by its number. */
type PerStream<Value> = Record<StreamId, Value>;

/** Three byte streams each way, each with its own window, over one transport. */
export class Channel {
  listener: ChannelListener = {};
  readonly #outgoing: PerStream<Outgoing> = [newOutgoing(), newOutgoing(), newOutgoing()];
  readonly #incoming: PerStream<ReceiveWindow>;
  readonly #lines: LineSplitter;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** @param maxMessageBytes of one message. A longer one is read as text that isn't JSON. */
  constructor(
    readonly id: number,
    maxMessageBytes: number,
    private readonly transport: Transport,
    growth: GrowthBudget,
    private readonly forget: () => void,
  ) {
    this.#lines = new LineSplitter({
      maxBytes: maxMessageBytes,
      standIn: (characters) => `[a message of ${characters} characters]`,
    });
    this.#incoming = [new ReceiveWindow(growth), new ReceiveWindow(growth), new ReceiveWindow(growth)];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Messages keep their order. */
  send(message: object): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`, "utf8");
    this.#writing = this.#writing.then(() => this.write(streams.messages, bytes));
    return this.#writing;
  }

  /**
   * One write of a stream at a time. Undefined when everything is sent, which is the usual case and costs no promise.
   * Otherwise a promise that settles when everything is sent, or when there is no reader any more.
   */
  write(stream: StreamId, bytes: Uint8Array): Promise<void> | undefined {
    const writing: Writing = { outgoing: this.#outgoing[stream], stream, bytes, sent: 0 };
    const wait = this.#proceed(writing);
    return wait === undefined ? undefined : this.#finish(writing, wait);
  }

  /** Sends as much as is allowed now. @returns a promise for the rest, if there is any. */
  #proceed(writing: Writing): Promise<void> | undefined {
    const { outgoing, stream, bytes } = writing;
    while (writing.sent < bytes.length && !this.#isClosed) {
      const wait = outgoing.credit === 0 ? creditFor(outgoing) : this.transport.room();
      if (wait !== undefined) return wait;
      const end = this.transport.chunkEnd(bytes, writing.sent, outgoing.credit);
      outgoing.credit -= end - writing.sent;
      outgoing.sent += end - writing.sent;
      this.transport.sendData(this.id, stream, bytes.subarray(writing.sent, end));
      writing.sent = end;
    }
    return undefined;
  }

  async #finish(writing: Writing, first: Promise<void>): Promise<void> {
    for (let wait: Promise<void> | undefined = first; wait !== undefined; wait = this.#proceed(writing))
      await wait;
  }

  end(stream: StreamId): void {
    if (!this.#isClosed) this.transport.send(["end", this.id, stream]);
  }

  close(): void {
    if (this.#isClosed) return;
    this.transport.send(["close", this.id]);
    this.closed();
  }

  /** @throws WindowExceeded */
  accept(frame: Frame): void {
    switch (frame[0]) {
      case "data": {
        const [, , stream, ...payload] = frame;
        this.arrived(stream, decodePayload(payload));
        return;
      }
      case "end":
        this.listener.end?.(frame[2]);
        return;
      case "windowUpdate": {
        const outgoing = this.#outgoing[frame[2]];
        outgoing.credit = Math.min(windowAfter(outgoing.sent), outgoing.credit + frame[3]);
        outgoing.wake?.();
        outgoing.wake = undefined;
        return;
      }
      case "close":
        this.closed();
        return;
      case "open":
    }
  }

  /** The other side closed it, or the transport is lost. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stream of Object.values(streams)) {
      this.#outgoing[stream].wake?.();
      this.#incoming[stream].close();
    }
    this.forget();
    this.listener.closed?.();
  }

  /** @throws WindowExceeded */
  arrived(stream: StreamId, bytes: Uint8Array): void {
    if (!this.#incoming[stream].arrived(bytes.length))
      throw new WindowExceeded(`Channel ${this.id} received more than its window allows`);
    if (stream === streams.messages) {
      // Without a listener, nothing is kept of them, however long they are.
      const lines = this.listener.message === undefined ? [] : this.#lines.push(bytes);
      for (const line of lines) this.listener.message?.(parseBoundedJson(line));
      this.#taken(stream, bytes.length);
      return;
    }
    const { length } = bytes;
    const taken = (count = length) => this.#taken(stream, count);
    if (this.listener.data === undefined) taken();
    else this.listener.data(stream, bytes, taken);
  }

  #taken(stream: StreamId, bytes: number): void {
    if (this.#isClosed) return;
    const allowed = this.#incoming[stream].taken(bytes);
    if (allowed !== undefined) this.transport.send(["windowUpdate", this.id, stream, allowed]);
  }
}

function newOutgoing(): Outgoing {
  return { credit: firstWindow, sent: 0, wake: undefined };
}

function creditFor(outgoing: Outgoing): Promise<void> {
  return new Promise((resolve) => {
    outgoing.wake = resolve;
  });
}

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
