import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { LoopTurns } from "../../src/plugin/index.js";

/** Takes all at once, and lists what was taken in each turn of the event loop. */
async function taken(turns: LoopTurns, sizes: readonly number[]): Promise<number[][]> {
  const found: number[][] = [[]];
  let open = sizes.length;
  for (const size of sizes) {
    const take = () => {
      found.at(-1)?.push(size);
      open -= 1;
    };
    const wait = turns.take(size);
    if (wait === undefined) take();
    else void wait.then(take);
  }
  while (open > 0) {
    found.push([]);
    await nextTurn();
  }
  return found.filter((turn) => turn.length > 0);
}

describe("turns of the event loop", () => {
  it.each([
    { sizes: [10, 20, 30], by: [[10, 20, 30]] },
    { sizes: [60, 50, 40, 60, 30], by: [[60], [50, 40], [60, 30]] },
    { sizes: [500, 500, 30, 30], by: [[500], [500], [30, 30]] },
    { sizes: [30, 500, 30], by: [[30], [500], [30]] },
    { sizes: [500, 500, 1, 6], by: [[500, 1, 6], [500]] },
    { sizes: [6, 500, 6], by: [[6, 500, 6]] },
  ])("take $sizes as $by", async ({ sizes, by }) => {
    expect(await taken(new LoopTurns(100), sizes)).toEqual(by);
  });

  it("bound small pieces too", async () => {
    const sizes = Array.from({ length: 40 }, () => 5);
    const turns = await taken(new LoopTurns(100), [500, 500, ...sizes]);
    expect(turns.map((turn) => turn.length)).toEqual([21, 21]);
  });

  it("begin anew after a pause", async () => {
    const turns = new LoopTurns(100);
    expect(turns.take(100)).toBeUndefined();
    await nextTurn();
    expect(turns.take(100)).toBeUndefined();
    expect(turns.take(10)).toBeInstanceOf(Promise);
  });

  it("are shared with those who arrive: work pauses for as long as it took", async () => {
    const turns = new LoopTurns(100);
    await turns.take(500);
    // A turn of ten milliseconds.
    const begun = performance.now();
    void turns.take(500);
    const second = turns.take(500);
    await nextTurn();
    while (performance.now() - begun < 10);
    let paused = 0;
    const isDone = second?.then(() => true);
    turns.arrived();
    while ((await Promise.race([isDone, nextTurn(false)])) === false) {
      paused += 1;
      turns.arrived();
    }
    expect(paused).toBeGreaterThan(1);
  });

  it("bounds how many pieces are handled in a turn, however small they are", async () => {
    const turns = await taken(new LoopTurns(100), Array(2_000).fill(0));
    expect(turns.map(({ length }) => length)).toEqual([512, 512, 512, 464]);
  });
});
