import { describe, expect, it } from "vitest";
import { ByteFormat, contentRecord, preamble, signalRecord } from "../src/transport/byte-format.js";
import type { Channel, ChannelListener } from "../src/transport/channels.js";
import { Channels } from "../src/transport/channels.js";
import {
  type Frame,
  FrameMissing,
  LineFormat,
  maxChunkBytes,
  readLine,
  streams,
  TransportBroken,
} from "../src/transport/transport.js";

const MB = 2 ** 20;

/** The runner's side, and anything that the guest daemon may send to it. */
class Runner {
  readonly accepted: Channel[] = [];
  readonly sent: Frame[] = [];
  readonly format: LineFormat = new LineFormat("runner", (frame) => this.channels.deliver(frame));
  readonly transport = this.format.transport;
  readonly channels: Channels;
  #number = 0;

  constructor(listener: ChannelListener = {}) {
    this.channels = new Channels("runner", this.transport, (_kind, channel) => {
      this.accepted.push(channel);
      return listener;
    });
    const sink = {
      write: (lines: string) => {
        for (const text of lines.split("\n")) {
          const line = readLine("runner", text);
          if (line.kind === "frame") this.sent.push(line.frame);
        }
      },
    };
    this.transport.attach(sink, 0);
  }

  receive(frame: Frame, length = 100): void {
    this.#number += 1;
    this.format.accept(this.#number, frame, length);
  }

  count(op: Frame[0]): number {
    return this.sent.filter(([one]) => one === op).length;
  }
}

const letTasksRun = () => new Promise<void>((resolve) => setImmediate(resolve));
const piece = "x".repeat(maxChunkBytes);

describe("a transport with an untrusted peer", () => {
  it("opens a bounded number of channels for it, and forgets those that close", () => {
    const runner = new Runner();
    for (let id = 2; id <= 20_000; id += 2) runner.receive(["open", id, "connection"]);
    expect(runner.accepted).toHaveLength(512);
    expect(runner.count("close")).toBe(10_000 - 512);
    for (const { id } of runner.accepted) runner.receive(["close", id]);
    runner.receive(["open", 2, "connection"]);
    expect(runner.accepted).toHaveLength(513);
  });

  it("lets it open no channel with a local number, and none twice", () => {
    const runner = new Runner();
    expect(() => runner.receive(["open", 3, "connection"])).toThrow("can't be opened");
    runner.receive(["open", 4, "connection"]);
    expect(() => runner.receive(["open", 4, "connection"])).toThrow("can't be opened");
  });

  it("fails if it receives more than its window allows", () => {
    const runner = new Runner({ data: () => undefined });
    runner.receive(["open", 2, "connection"]);
    expect(() => {
      for (let sent = 0; sent < 2 * MB; sent += maxChunkBytes)
        runner.receive(["data", 2, streams.main, piece]);
    }).toThrow("more than its window");
  });

  it("drops messages without a listener, and bounds one without an end", () => {
    const unreadPeer = new Runner();
    unreadPeer.receive(["open", 2, "connection"]);
    for (let sent = 0; sent < 8 * MB; sent += maxChunkBytes)
      unreadPeer.receive(["data", 2, streams.messages, piece]);
    // Nor is it parsed.
    unreadPeer.receive(["data", 2, streams.messages, "\n{\n"]);

    const received: unknown[] = [];
    const hearing = new Runner({ message: (message) => received.push(message) });
    hearing.receive(["open", 2, "connection"]);
    for (let sent = 0; sent < 8 * MB; sent += maxChunkBytes)
      hearing.receive(["data", 2, streams.messages, piece]);
    expect(() => hearing.receive(["data", 2, streams.messages, "\n"])).toThrow(SyntaxError);
    expect(received).toEqual([]);
  });

  it("sends no more than a window, whatever the peer acknowledges", async () => {
    const runner = new Runner();
    runner.receive(["open", 2, "connection"]);
    const [channel] = runner.accepted;
    for (let time = 0; time < 10; time++)
      runner.receive(["windowUpdate", 2, streams.main, Number.MAX_SAFE_INTEGER]);
    void channel?.write(streams.main, Buffer.alloc(4 * MB, "x"));
    await letTasksRun();
    expect(runner.count("data") * maxChunkBytes).toBeLessThan(MB);
  });

  it("stops writing to a peer that acknowledges nothing, and continues when it does", async () => {
    const runner = new Runner();
    runner.receive(["open", 2, "connection"]);
    const [channel] = runner.accepted;
    let isWritten = false;
    const writing = channel?.write(streams.main, Buffer.alloc(64 * MB, "x"))?.then(() => {
      isWritten = true;
    });
    for (let time = 0; time < 1_000; time++) {
      runner.receive(["windowUpdate", 2, streams.main, MB]);
      await letTasksRun();
    }
    expect(isWritten).toBe(false);
    expect(runner.transport.bufferedSize).toBeLessThan(9 * MB);
    for (let time = 0; time < 1_000 && !isWritten; time++) {
      runner.transport.acknowledged(runner.sent.length);
      runner.receive(["windowUpdate", 2, streams.main, MB]);
      await letTasksRun();
    }
    await writing;
    expect(isWritten).toBe(true);
  });

  it("fails for a peer that causes endless responses and acknowledges nothing", () => {
    const runner = new Runner();
    expect(() => {
      for (let id = 2; id < 8_000_000; id += 2) runner.receive(["open", id, "connection"]);
    }).toThrow(TransportBroken);
    expect(runner.transport.bufferedSize).toBeLessThan(64 * MB);
  });

  it("accepts each frame once, in order, and no acknowledgement of unsent frames", () => {
    const runner = new Runner();
    runner.format.accept(1, ["open", 2, "connection"], 10);
    runner.format.accept(1, ["open", 2, "connection"], 10);
    expect(runner.accepted).toHaveLength(1);
    expect(() => runner.format.accept(3, ["open", 2, "connection"], 10)).toThrow(FrameMissing);
    expect(() => runner.transport.acknowledged(5)).toThrow(TransportBroken);
    expect(() => runner.transport.attach({ write: () => undefined }, 99)).toThrow(TransportBroken);
  });

  it("releases all waiters when the connection is lost", async () => {
    const runner = new Runner();
    const channel = runner.channels.open("run", () => ({}));
    const writing = channel.write(streams.main, Buffer.alloc(4 * MB));
    runner.transport.close();
    runner.channels.closeAll();
    await writing;
    let isClosed = false;
    runner.channels.open("run", () => ({
      closed: () => {
        isClosed = true;
      },
    }));
    expect(isClosed).toBe(true);
    expect(runner.transport.bufferedSize).toBe(0);
  });
});

/** Everything that arrived, in order. */
class Side {
  readonly arrived: string[] = [];
  readonly format = new ByteFormat({
    frame: (frame) => this.#add(JSON.stringify(frame)),
    data: (channel, stream, bytes) => this.#addData(`${channel} ${stream}`, Buffer.from(bytes).toString()),
  });
  #open: string | undefined;

  /** Pieces of one frame may arrive on their own: what counts is their text. */
  #addData(stream: string, text: string): void {
    if (this.#open === stream) this.arrived.push(`${this.arrived.pop()}${text}`);
    else this.arrived.push(`${stream} ${text}`);
    this.#open = stream;
  }

  #add(text: string): void {
    this.#open = undefined;
    this.arrived.push(text);
  }
}

/** Carries what is written to it to the other side's format, up to a number of bytes. */
function pipeTo({ format }: Side, limit: number) {
  const reader = format.newReader();
  let carried = 0;
  const write = (bytes: Uint8Array) => {
    const passed = bytes.subarray(0, Math.max(0, limit - carried));
    carried += passed.length;
    // Each byte alone, since a pipe's pieces may begin and end anywhere; the last long part at once.
    const pieces = passed.length > 1_000 ? [passed] : [...passed].map((byte) => Uint8Array.of(byte));
    for (const event of pieces.flatMap((piece) => reader.push(piece)))
      if (event.kind === "content") event.accept();
      else if (event.kind === "signal" && event.signal[0] === "ack")
        format.transport.acknowledged(event.signal[1]);
  };
  write(preamble);
  return { write, carried: () => carried };
}

const frames = [
  ["open", 1, "run"],
  ["windowUpdate", 1, streams.main, 65_536],
  ["end", 1, streams.error],
  ["close", 1],
] as const;

/** All kinds of frames, among them data above the size that is copied. */
function sendAll({ format: { transport } }: Side): void {
  for (const frame of frames) {
    transport.send(frame);
    transport.sendData(3, streams.main, Buffer.from("a few words"));
  }
  transport.sendData(5, streams.messages, Buffer.alloc(5_000, "x"));
}

describe("bytes that survive their pipes", () => {
  it("arrive once and in order, wherever in a frame or a record a pipe is cut", () => {
    const whole = new Side();
    const [from, all] = [new Side(), pipeTo(whole, Number.POSITIVE_INFINITY)];
    from.format.transport.attach(all, 0);
    sendAll(from);
    expect(whole.arrived).toHaveLength(frames.length * 2 + 1);
    // Past the beginning of the last frame, its bytes are all alike.
    for (let cut = 0; cut < all.carried() - 4_900; cut += 1) {
      const [sender, receiver] = [new Side(), new Side()];
      sender.format.transport.attach(pipeTo(receiver, cut), 0);
      sendAll(sender);
      // The next pipe begins, and is cut within a few bytes too.
      sender.format.transport.attach(
        pipeTo(receiver, preamble.length + (cut % 40)),
        receiver.format.transport.received,
      );
      sender.format.transport.attach(
        pipeTo(receiver, Number.POSITIVE_INFINITY),
        receiver.format.transport.received,
      );
      expect(receiver.arrived, `cut after ${cut} bytes`).toEqual(whole.arrived);
    }
  });

  it("arrive once from an older pipe that still delivers while the next one does", () => {
    const [sender, receiver] = [new Side(), new Side()];
    const older: Uint8Array[] = [];
    sender.format.transport.attach({ write: (bytes) => older.push(Buffer.from(bytes)) }, 0);
    sendAll(sender);
    const newer: Uint8Array[] = [];
    sender.format.transport.attach({ write: (bytes) => newer.push(Buffer.from(bytes)) }, 0);
    const [one, other] = [
      pipeTo(receiver, Number.POSITIVE_INFINITY),
      pipeTo(receiver, Number.POSITIVE_INFINITY),
    ];
    const streamsOf = [Buffer.concat(older), Buffer.concat(newer)] as const;
    for (let at = 0; at < streamsOf[0].length; at += 7) {
      one.write(streamsOf[0].subarray(at, at + 7));
      other.write(streamsOf[1].subarray(at, at + 7));
    }
    const whole = new Side();
    new Side().format.transport.attach(pipeTo(whole, 0), 0);
    pipeTo(whole, Number.POSITIVE_INFINITY).write(streamsOf[0]);
    expect(receiver.arrived).toEqual(whole.arrived);
  });

  it("come after a shell's message, and not after endless noise", () => {
    const receiver = new Side();
    const reader = receiver.format.newReader();
    const open = contentRecord(0, Buffer.from([0, 0, 0, 3, 1, 0, 0, 0, 0, 2, 0x72, 0x75, 0x6e]));
    const events = reader.push(Buffer.concat([Buffer.from("Welcome!\n"), preamble, open]));
    expect(events[0]).toEqual({ kind: "noise", text: "Welcome!\n" });
    for (const event of events) if (event.kind === "content") event.accept();
    expect(receiver.arrived).toEqual(['["open",2,"run"]']);
    const endless = receiver.format.newReader();
    expect(() => {
      for (let time = 0; time < 100; time += 1) endless.push(Buffer.alloc(4096, "x"));
    }).toThrow(TransportBroken);
  });

  it("aren't accepted with a gap, or as something else", () => {
    const { format } = new Side();
    expect(() => format.accept(5, Buffer.from("x"))).toThrow(FrameMissing);
    expect(() => format.newReader().push(Buffer.concat([preamble, Buffer.from([7, 0, 0, 0])]))).toThrow(
      TransportBroken,
    );
    const tooLong = Buffer.concat([preamble, Buffer.from([0, 255, 255, 255, 0, 0, 0, 0, 0, 0])]);
    expect(() => format.newReader().push(tooLong)).toThrow(TransportBroken);
    const unknown = Buffer.concat([preamble, signalRecord(["ping"]).fill("{", 4)]);
    expect(() => format.newReader().push(unknown)).toThrow(TransportBroken);
    expect(() => format.transport.acknowledged(5)).toThrow(TransportBroken);
    expect(() => format.transport.attach({ write: () => undefined }, 99)).toThrow(TransportBroken);
  });

  it("stop for a peer that acknowledges nothing, and continue when it does", async () => {
    const format: ByteFormat = new ByteFormat({
      frame: (frame) => channels.deliver(frame),
      data: (channel, stream, bytes) => channels.deliverData(channel, stream, bytes),
    });
    const { transport } = format;
    const channels = new Channels("runner", transport, () => undefined);
    let sent = 0;
    transport.attach(
      {
        write: (bytes) => {
          sent += bytes.length;
        },
      },
      0,
    );
    const channel = channels.open("run", () => ({}));
    const writing = channel.write(streams.main, Buffer.alloc(32 * MB));
    const proceed = async () => {
      channel.accept(["windowUpdate", channel.id, streams.main, MB]);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let time = 0; time < 100; time += 1) await proceed();
    expect(transport.bufferedSize).toBeLessThan(9 * MB);
    expect(sent).toBeLessThan(10 * MB);
    const finished = Symbol("finished");
    let acknowledged = 0;
    const done = writing?.then(() => finished);
    for (let time = 0; time < 200; time += 1) {
      acknowledged += transport.bufferedSize;
      transport.acknowledged(acknowledged);
      await proceed();
    }
    expect(await done).toBe(finished);
  });
});
