import { parseBoundedJson } from "@ambit/core/contract";
import { LineSplitter } from "@ambit/core/plugin";
import { decodePayload, type Frame, type StreamId, streams } from "./frame.js";
import type { Transport } from "./transport.js";
import { firstWindow, type GrowthBudget, ReceiveWindow, windowAfter } from "./windows.js";

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
export class WindowExceeded extends Error {}

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
