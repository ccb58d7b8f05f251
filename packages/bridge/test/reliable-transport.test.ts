import { describe, expect, it } from "vitest";
import type { Channel, ChannelListener } from "../src/transport/channel.js";
import { Channels } from "../src/transport/channels.js";
import { type Frame, readLine, streams } from "../src/transport/frame.js";
import { maxChunkBytes } from "../src/transport/payload.js";
import { FrameMissing, ReliableTransport, TransportBroken } from "../src/transport/reliable-transport.js";

const MB = 2 ** 20;

/** The runner's side, and anything that the guest daemon may send to it. */
class Runner {
  readonly accepted: Channel[] = [];
  readonly sent: Frame[] = [];
  readonly transport: ReliableTransport = new ReliableTransport("runner", (frame) =>
    this.channels.deliver(frame),
  );
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
    this.transport.accept({ kind: "frame", number: this.#number, frame }, length);
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
    expect(runner.transport.kept).toBeLessThan(9 * MB);
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
    expect(runner.transport.kept).toBeLessThan(64 * MB);
  });

  it("accepts each frame once, in order, and no acknowledgement of unsent frames", () => {
    const runner = new Runner();
    const open = { kind: "frame", number: 1, frame: ["open", 2, "connection"] } as const;
    runner.transport.accept(open, 10);
    runner.transport.accept(open, 10);
    expect(runner.accepted).toHaveLength(1);
    expect(() => runner.transport.accept({ ...open, number: 3 }, 10)).toThrow(FrameMissing);
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
    expect(runner.transport.kept).toBe(0);
  });
});
