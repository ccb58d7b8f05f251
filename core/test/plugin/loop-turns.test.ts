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
    { sizes: [500, 500, 1, 1], by: [[500], [500], [1, 1]] },
    { sizes: [1, 500, 1], by: [[1], [500], [1]] },
  ])("take $sizes as $by", async ({ sizes, by }) => {
    expect(await taken(new LoopTurns(100), sizes)).toEqual(by);
  });

  it("begin anew after a pause", async () => {
    const turns = new LoopTurns(100);
    expect(turns.take(100)).toBeUndefined();
    await nextTurn();
    expect(turns.take(100)).toBeUndefined();
    expect(turns.take(1)).toBeInstanceOf(Promise);
  });
});
