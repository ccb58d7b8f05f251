import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { firstWindow, GrowthBudget, largestWindow, ReceiveWindow } from "../src/transport/channels.js";
import {
  chunkEnd,
  dataLine,
  decodePayload,
  type Frame,
  frameLine,
  maxChunkBytes,
  maxLineBytes,
  readLine,
  signalLine,
  streams,
} from "../src/transport/transport.js";

const stream = fc.constantFrom(...Object.values(streams));
const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const side = fc.constantFrom("runner" as const, "inside" as const);

/** Bytes as streams have them: text of every kind, control characters, and what is no text at all. */
const content = fc.oneof(
  fc.uint8Array({ maxLength: maxChunkBytes }),
  fc.string({ unit: "binary", maxLength: maxChunkBytes / 4 }).map((text) => Buffer.from(text, "utf8")),
  fc
    .tuple(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 1, max: maxChunkBytes }))
    .map(([byte, length]) => Buffer.alloc(length, byte)),
);

function frameIn(from: "runner" | "inside", text: string): Frame {
  const line = readLine(from, text);
  if (line.kind !== "frame") throw new Error(`${line.kind}: ${text.slice(0, 100)}`);
  return line.frame;
}

describe("a line of the bridge", () => {
  it("carries any bytes, in fewer characters than a pipe takes and without NUL", () => {
    fc.assert(
      fc.property(side, count, count, stream, content, (from, number, channel, on, bytes) => {
        const line = dataLine(from, number + 1, channel, on, bytes);
        expect(Buffer.byteLength(line)).toBeLessThan(maxLineBytes);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(line).not.toContain("\0");
        if (number === Number.MAX_SAFE_INTEGER) return;
        const frame = frameIn(from, line.slice(0, -1));
        if (frame[0] !== "data") throw new Error(frame[0]);
        const [op, id, where, ...payload] = frame;
        expect([op, id, where]).toEqual(["data", channel, on]);
        expect(Buffer.compare(decodePayload(payload), bytes)).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it("carries the other frames and signals unchanged, and isn't accepted by its own sender", () => {
    const frames: readonly Parameters<typeof frameLine>[2][] = [
      ["open", 1, "run"],
      ["end", 2, 1],
      ["windowUpdate", 3, 0, 65_536],
      ["close", 4],
    ];
    for (const frame of frames) {
      const line = frameLine("runner", 7, frame).trimEnd();
      expect(readLine("runner", line)).toEqual({ kind: "frame", number: 7, frame });
      expect(readLine("inside", line)).toEqual({ kind: "noise" });
    }
    const line = signalLine("inside", ["hello", 1, "epoch", 2, 3]).trimEnd();
    expect(readLine("inside", line)).toEqual({ kind: "signal", signal: ["hello", 1, "epoch", 2, 3] });
  });

  it("is ignored as noise, and never throws, for any content", () => {
    const almost = fc
      .tuple(fc.constantFrom('["<",', '["<"', '["<",1,', '["<",0,'), fc.string({ unit: "binary" }))
      .map(([start, rest]) => start + rest);
    const parts = fc.array(fc.jsonValue(), { maxLength: 6 }).map((rest) => JSON.stringify(["<", ...rest]));
    const numbered = fc
      .tuple(
        fc.oneof(count, fc.double(), fc.constant(-1)),
        fc.constantFrom(
          "open",
          "data",
          "end",
          "windowUpdate",
          "close",
          "hello",
          "ack",
          "__proto__",
          "constructor",
        ),
        fc.array(fc.jsonValue(), { maxLength: 4 }),
      )
      .map(([number, op, rest]) => JSON.stringify(["<", number, op, ...rest]));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), almost, parts, numbered), (text) => {
        expect(["frame", "signal", "noise"]).toContain(readLine("inside", text).kind);
      }),
      { numRuns: 2_000 },
    );
    const deep = `["<",1,"open",1,${"[".repeat(8_000)}`;
    expect(readLine("inside", deep)).toEqual({ kind: "noise" });
  });
});

describe("chunks of a stream", () => {
  it("are never empty, never too long, and end between characters where there are characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 400 }).map((text) => Buffer.from(text, "utf8")),
        fc.integer({ min: 4, max: 64 }),
        (bytes, max) => {
          let text = "";
          for (let start = 0; start < bytes.length; ) {
            const end = chunkEnd(bytes, start, max);
            expect(end).toBeGreaterThan(start);
            expect(end - start).toBeLessThanOrEqual(max);
            text += bytes.subarray(start, end).toString("utf8");
            start = end;
          }
          expect(text).toBe(bytes.toString("utf8"));
        },
      ),
    );
    const noText = Buffer.alloc(100, 0x80);
    expect(chunkEnd(noText, 0, 10)).toBe(10);
  });
});

/** A reader that takes everything at once, in pieces. @returns what the other side was allowed in addition to the first window. */
function pass(window: ReceiveWindow, bytes: number, piece = 64 * 1024): number {
  let allowed = 0;
  for (let passed = 0; passed < bytes; passed += piece) {
    expect(window.arrived(piece)).toBe(true);
    allowed += window.taken(piece) ?? 0;
  }
  return allowed;
}

describe("a stream's window", () => {
  it("stays as it is for a reader that never reads", () => {
    const window = new ReceiveWindow(new GrowthBudget());
    expect(window.arrived(firstWindow)).toBe(true);
    expect(window.arrived(1)).toBe(false);
  });

  it("grows with a reader that keeps up, to its limit", () => {
    const window = new ReceiveWindow(new GrowthBudget());
    const passed = 16 * largestWindow;
    const allowed = pass(window, passed);
    // What it has passed, and the growth: no more may be in flight.
    expect(allowed).toBeGreaterThan(passed);
    expect(allowed).toBeLessThanOrEqual(passed + largestWindow - firstWindow);
    expect(window.arrived(largestWindow)).toBe(true);
    expect(window.arrived(1)).toBe(false);
  });

  it("grows together with all others of its transport by a limited number of bytes", () => {
    const budget = new GrowthBudget();
    const windows = Array.from({ length: 100 }, () => new ReceiveWindow(budget));
    for (const window of windows) pass(window, 8 * largestWindow);
    const roomOf = (window: ReceiveWindow) => (window.arrived(largestWindow) ? largestWindow : firstWindow);
    const room = windows.map(roomOf).reduce((sum, one) => sum + one, 0);
    expect(room).toBeLessThanOrEqual(100 * firstWindow + 8 * 1024 * 1024);
    // A stream that ends leaves its share to others.
    for (const window of windows) window.close();
    const next = new ReceiveWindow(budget);
    pass(next, 8 * largestWindow);
    expect(next.arrived(largestWindow)).toBe(true);
  });
});
