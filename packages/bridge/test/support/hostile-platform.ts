import type { Pipe, RemotePlatform } from "@ambit/bridge";
import {
  dataLine,
  type Frame,
  frameLine,
  type PlainFrame,
  readLine,
  signalLine,
  streams,
} from "../../src/transport/transport.js";

/** What the guest daemon says to a request: a message on its channel. Undefined: nothing. */
export type Answer = (kind: string, say: (bytes: Uint8Array | string) => void) => object | undefined;

/** A guest daemon of the test's own, which speaks the protocol and says what it likes. */
export class HostilePlatform implements RemotePlatform {
  opened = 0;
  destroyed = 0;
  closed = 0;
  /** What the runner sent. */
  readonly received: Frame[] = [];
  /** Sends the runner a frame that it didn't ask for. */
  send: (frame: PlainFrame) => void = () => undefined;
  readonly answer: Answer;
  /** Said in place of a greeting. */
  readonly greeting: string | undefined;

  constructor(answer: Answer, greeting?: string) {
    this.answer = answer;
    this.greeting = greeting;
  }

  async openPipe(): Promise<Pipe> {
    this.opened += 1;
    let number = 0;
    const kinds = new Map<number, string>();
    let say: (line: string) => void = () => undefined;
    let isEnded = false;
    const output = new ReadableStream<Uint8Array>({
      start: (controller) => {
        say = (line) => {
          if (!isEnded) controller.enqueue(Buffer.from(line));
        };
      },
      cancel: () => {
        isEnded = true;
      },
    });
    const data = (channel: number, stream: 0 | 1 | 2, content: Uint8Array | string) => {
      number += 1;
      say(dataLine("inside", number, channel, stream, Buffer.from(content)));
    };
    this.send = (frame) => {
      number += 1;
      say(frameLine("inside", number, frame));
    };
    const received = (frame: Frame) => {
      this.received.push(frame);
      if (frame[0] === "open") kinds.set(frame[1], frame[2]);
      if (frame[0] !== "data" || frame[2] !== streams.messages) return;
      const [, channel] = frame;
      const answer = this.answer(kinds.get(channel) ?? "", (bytes) => data(channel, streams.main, bytes));
      if (answer !== undefined) data(channel, streams.messages, `${JSON.stringify(answer)}\n`);
    };
    return {
      output,
      write: async (lines) => {
        for (const text of lines.split("\n")) {
          const line = readLine("runner", text);
          if (line.kind === "frame") received(line.frame);
          if (line.kind === "frame") say(signalLine("inside", ["ack", line.number]));
          if (line.kind !== "signal" || line.signal[0] !== "hello") continue;
          say(this.greeting ?? signalLine("inside", ["hello", 1, "epoch", line.signal[3], 0]));
          // A frame of a number that isn't the next is no end, but an answer's beginning.
          if (this.greeting !== undefined) say(frameLine("inside", 1, ["close", 1]));
        }
      },
      close: async () => {
        this.closed += 1;
        isEnded = true;
      },
    };
  }

  async upload(): Promise<void> {}

  async destroy(): Promise<void> {
    this.destroyed += 1;
  }
}
