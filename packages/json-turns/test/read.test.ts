import { setImmediate as nextTurn } from "node:timers/promises";
import { SingleBytes } from "@ambit/fakes/single-bytes";
import { describe, expect, it } from "vitest";
import { jsonInTurns, parseJsonInTurns, textInTurns } from "../src/index.js";

/** What work returns, and how often the event loop turned meanwhile. */
async function counted<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; turns += 1) await nextTurn();
  })();
  const result = await work();
  isOver = true;
  await others;
  return { result, turns };
}

/** Pieces that are all there. */
async function* pieces(...all: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}

const large = new Uint8Array(65_536).fill(0x61);

describe("an input that is read in turns of the event loop", () => {
  it("is its text, wherever its characters are divided", async () => {
    const text = "é中😀".repeat(9);
    const bytes = new TextEncoder().encode(text);
    for (const length of [1, 2, 3, 5]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
        bytes.subarray(at * length, (at + 1) * length),
      );
      expect(await textInTurns(pieces(...parts), 1_000)).toEqual({ text, isWhole: true });
    }
    expect(await textInTurns(null, 10)).toEqual({ text: "", isWhole: true });
  });

  it("ends at its limit, and its source is left", async () => {
    let left = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield large;
      } finally {
        left = true;
      }
    }
    const { text, isWhole } = await textInTurns(endless(), 100_000);
    expect({ length: text.length, isWhole, left }).toEqual({ length: 100_000, isWhole: false, left: true });
    expect(await textInTurns(pieces(large), 65_536)).toMatchObject({ isWhole: true });
  });

  it("takes no more memory for single bytes than for others", async () => {
    const input = new SingleBytes(1_000_000);
    const { text } = await textInTurns(input.read(), input.count);
    expect(text.length).toBe(input.count);
    expect(input.perByte).toBeLessThan(4);
  });

  it("shares each turn with all others that arrive at the same time", async () => {
    const inputs = 16;
    const parts = 8;
    const ends: number[] = [];
    const { turns } = await counted(() =>
      Promise.all(
        Array.from({ length: inputs }, async (_, at) => {
          await textInTurns(pieces(...Array<Uint8Array>(parts).fill(large)), 1e9);
          ends.push(at);
        }),
      ),
    );
    // Four pieces of 65,536 bytes in one turn.
    expect(turns).toBeGreaterThanOrEqual((inputs * parts) / 4 - 1);
    expect(ends).toEqual(Array.from({ length: inputs }, (_, at) => at));
  });

  it("lets a small one pass large ones", async () => {
    const order: string[] = [];
    const read = async (name: string, ...all: readonly Uint8Array[]) => {
      await textInTurns(pieces(...all), 1e9);
      order.push(name);
    };
    await Promise.all([
      read("large", ...Array<Uint8Array>(50).fill(large)),
      nextTurn().then(() => read("small", new Uint8Array(1_000))),
    ]);
    expect(order).toEqual(["small", "large"]);
  });
});

describe("large JSON", () => {
  const value = Object.fromEntries(Array.from({ length: 49_000 }, (_, at) => [`key ${at}`, [at]]));
  const text = JSON.stringify(value);

  it("is parsed in turns", async () => {
    const limits = { maxLength: 1e9, maxValues: 1e9, maxDepth: 10 };
    const { result, turns } = await counted(() => parseJsonInTurns(text, limits));
    expect(result.value).toEqual(value);
    expect(turns).toBeGreaterThan(text.length / 65_536);
  });

  it("is written in turns", async () => {
    const { result, turns } = await counted(() => jsonInTurns(value));
    expect(result).toBe(text);
    expect(turns).toBeGreaterThan(text.length / 65_536);
  });

  it("is written in turns also where it's deep", async () => {
    let deep: unknown = Array(60_000).fill("");
    for (let level = 0; level < 200; level += 1) deep = [deep];
    const { result, turns } = await counted(() => jsonInTurns(deep));
    expect(result).toBe(JSON.stringify(deep));
    expect(turns).toBeGreaterThan(50);
  });
});
