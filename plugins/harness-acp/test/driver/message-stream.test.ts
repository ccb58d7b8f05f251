import { SingleBytes } from "@ambit/fakes/single-bytes";
import { stepsByTurn } from "@ambit/fakes/turns";
import { expect, it } from "vitest";
import { messageStream } from "../../src/driver/connection.js";
import { MessageIntake } from "../../src/driver/limits.js";

/** What arrives of an agent that prints these pieces. @param tap called with each message. */
async function arrived(pieces: AsyncIterable<Uint8Array>, tap: () => void = () => {}) {
  const noise: string[] = [];
  const { readable } = messageStream({
    stdin: new WritableStream(),
    stdout: ReadableStream.from(pieces),
    intake: new MessageIntake({ messageCharacters: 1e7, messageValues: 1_000, heldCharacters: 1e7 }),
    tap: () => {
      tap();
      return false;
    },
    room: () => undefined,
    onNoise: (line) => void noise.push(line),
  });
  const messages: unknown[] = [];
  for await (const message of readable) messages.push(message);
  return { messages, noise };
}

const notification = (text: string) => ({ jsonrpc: "2.0", method: "m", params: { text } });

it.each([1, 2, 3, 2_047, 2_048, 100_000])("messages in pieces of %i bytes arrive", async (length) => {
  const messages = ["", "é中😀", "x".repeat(9_000), "end"].map(notification);
  const printed = Buffer.from(`${messages.map((one) => JSON.stringify(one)).join("\n")}\nlast words 😀`);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < printed.length; at += length) yield printed.subarray(at, at + length);
  }
  expect(await arrived(pieces())).toEqual({ messages, noise: ["last words 😀"] });
});

it("a line that comes in single bytes takes no more memory than its bytes", async () => {
  const input = new SingleBytes(500_000);
  const { noise } = await arrived(input.read());
  expect(noise.map(({ length }) => length)).toEqual([input.count]);
  expect(input.perByte).toBeLessThan(8);
});

it("large messages are parsed one in each turn of the event loop, however many agents send them", async () => {
  const printed = Buffer.from(`${JSON.stringify(notification("x".repeat(100_000)))}\n`.repeat(2));
  async function* pieces(): AsyncGenerator<Uint8Array> {
    yield printed;
  }
  const parsed = await stepsByTurn((step) =>
    Promise.all(Array.from({ length: 4 }, () => arrived(pieces(), step))),
  );
  expect(parsed).toEqual(Array.from({ length: 8 }, () => 1));
});
