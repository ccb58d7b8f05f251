import { type Frame, type Lane, lanes } from "./frame.js";
import { Lines } from "./lines.js";
import { chunkEnd, decodePayload, longestChunk } from "./payload.js";
import type { Link } from "./reliable-transport.js";

/** Bytes of a lane that may be on their way, and so what a reader that never reads makes anyone keep. */
const window = 512 * 1024;

/** What a channel's owner hears. Absent handlers drop what comes. */
export interface ChannelListener {
  message?(message: unknown): void;
  /** @param taken to be called once the bytes have been put where they go: the writer may send as many more. */
  data?(lane: Lane, bytes: Uint8Array, taken: () => void): void;
  end?(lane: Lane): void;
  /** Once, when either side has closed it, or the link is lost. */
  closed?(): void;
}

/** The other side sent more than it may. */
export class WindowExceeded extends Error {}

interface Outgoing {
  credit: number;
  wake: (() => void) | undefined;
}

/** Three byte streams each way, each with a window of its own, over one link. */
export class Channel {
  listener: ChannelListener = {};
  readonly #outgoing = new Map<Lane, Outgoing>();
  readonly #untaken = new Map<Lane, number>();
  readonly #owed = new Map<Lane, number>();
  readonly #lines: Lines;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** @param longestMessage characters of one message that is taken. */
  constructor(
    readonly id: number,
    longestMessage: number,
    private readonly link: Pick<Link, "send" | "sendData" | "room">,
    private readonly forget: () => void,
  ) {
    this.#lines = new Lines(longestMessage);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Messages keep their order, among themselves. */
  send(message: object): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`, "utf8");
    this.#writing = this.#writing.then(() => this.write(lanes.messages, bytes));
    return this.#writing;
  }

  /** One write of a lane at a time. Settles when all is on its way, or nobody will have it. */
  async write(lane: Lane, bytes: Uint8Array): Promise<void> {
    const outgoing = this.#outgoingOf(lane);
    for (let start = 0; start < bytes.length && !this.#isClosed; ) {
      if (outgoing.credit === 0) {
        await new Promise<void>((resolve) => {
          outgoing.wake = resolve;
        });
        continue;
      }
      const room = this.link.room();
      if (room !== undefined) {
        await room;
        continue;
      }
      const end = chunkEnd(bytes, start, Math.min(longestChunk, outgoing.credit));
      outgoing.credit -= end - start;
      this.link.sendData(this.id, lane, bytes.subarray(start, end));
      start = end;
    }
  }

  end(lane: Lane): void {
    if (!this.#isClosed) this.link.send(["end", this.id, lane]);
  }

  close(): void {
    if (this.#isClosed) return;
    this.link.send(["close", this.id]);
    this.closed();
  }

  /** @throws WindowExceeded */
  accept(frame: Frame): void {
    switch (frame[0]) {
      case "data": {
        const [, , lane, ...payload] = frame;
        this.#arrived(lane, decodePayload(payload));
        return;
      }
      case "end":
        this.listener.end?.(frame[2]);
        return;
      case "taken": {
        const outgoing = this.#outgoingOf(frame[2]);
        outgoing.credit = Math.min(window, outgoing.credit + frame[3]);
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

  /** The other side closed it, or the link is lost. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const outgoing of this.#outgoing.values()) outgoing.wake?.();
    this.forget();
    this.listener.closed?.();
  }

  #arrived(lane: Lane, bytes: Uint8Array): void {
    const untaken = (this.#untaken.get(lane) ?? 0) + bytes.length;
    if (untaken > window) throw new WindowExceeded(`Channel ${this.id} was sent more than it asked for`);
    this.#untaken.set(lane, untaken);
    if (lane === lanes.messages) {
      // Whoever listens to none keeps none, however long they are.
      const lines = this.listener.message === undefined ? [] : this.#lines.push(bytes);
      for (const line of lines) this.listener.message?.(JSON.parse(line));
      this.#taken(lane, bytes.length);
      return;
    }
    const taken = () => this.#taken(lane, bytes.length);
    if (this.listener.data === undefined) taken();
    else this.listener.data(lane, bytes, taken);
  }

  #taken(lane: Lane, bytes: number): void {
    this.#untaken.set(lane, (this.#untaken.get(lane) ?? 0) - bytes);
    const owed = (this.#owed.get(lane) ?? 0) + bytes;
    const isDue = owed >= window / 4 && !this.#isClosed;
    this.#owed.set(lane, isDue ? 0 : owed);
    if (isDue) this.link.send(["taken", this.id, lane, owed]);
  }

  #outgoingOf(lane: Lane): Outgoing {
    const known = this.#outgoing.get(lane);
    if (known !== undefined) return known;
    const fresh: Outgoing = { credit: window, wake: undefined };
    this.#outgoing.set(lane, fresh);
    return fresh;
  }
}
