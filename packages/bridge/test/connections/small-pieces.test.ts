import { expect, it } from "vitest";
import { duplexOf, IncomingStream } from "../../src/host/streams.js";
import { Channel, firstWindow, GrowthBudget } from "../../src/transport/channels.js";
import type { Frame } from "../../src/transport/transport.js";

const count = firstWindow - 1_000;
const bytes = Buffer.from(Array.from({ length: count }, (_, at) => at % 251));

/** A channel of a peer that sends single bytes, and what it was told that it may send. */
function channelOf() {
  const sent: Frame[] = [];
  const transport = {
    send: (frame: Frame) => void sent.push(frame),
    sendData: () => undefined,
    room: () => undefined,
    chunkEnd: (all: Uint8Array) => all.length,
  };
  const channel = new Channel(1, 1_000, transport, new GrowthBudget(), () => undefined);
  const arrive = () => {
    for (let at = 0; at < count; at += 1) channel.arrived(0, bytes.subarray(at, at + 1));
    channel.arrived(0, Buffer.alloc(1_000, 7));
  };
  const allowed = () => sent.reduce((sum, frame) => sum + (frame[0] === "windowUpdate" ? frame[3] : 0), 0);
  return { channel, arrive, allowed };
}
const whole = Buffer.concat([bytes, Buffer.alloc(1_000, 7)]);

it("single bytes that wait for a process's reader are put together", async () => {
  const { channel, arrive, allowed } = channelOf();
  const incoming = new IncomingStream();
  channel.listener = { data: (_stream, piece, taken) => incoming.push(piece, taken) };
  arrive();
  expect(allowed()).toBe(0);
  incoming.end();
  const pieces: Uint8Array[] = [];
  for await (const piece of incoming.stream) pieces.push(piece);
  expect(Buffer.concat(pieces).equals(whole)).toBe(true);
  expect(pieces.length).toBeLessThan(whole.length / 500);
  // All of it is taken, which a larger window follows.
  expect(allowed()).toBeGreaterThanOrEqual(whole.length);
});

it("so are those that wait for a connection's reader", async () => {
  const { channel, arrive, allowed } = channelOf();
  const { duplex, listener } = duplexOf(channel);
  channel.listener = listener;
  arrive();
  expect(allowed()).toBe(0);
  listener.end?.(0);
  const pieces: Buffer[] = [];
  for await (const piece of duplex) pieces.push(piece);
  expect(Buffer.concat(pieces).equals(whole)).toBe(true);
  expect(pieces.length).toBeLessThan(whole.length / 500);
  expect(allowed()).toBeGreaterThanOrEqual(whole.length);
});
