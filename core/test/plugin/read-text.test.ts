import { stepsByTurn } from "@ambit/fakes/turns";
import { expect, it } from "vitest";
import { readText } from "../../src/plugin/index.js";

async function* piecesOf(length: number): AsyncGenerator<Uint8Array> {
  for (let left = length; left > 0; left -= 10_000) yield Buffer.alloc(Math.min(left, 10_000), "x");
}

it("returns one large text in each turn of the event loop, however many arrive at once", async () => {
  const reads = await stepsByTurn((step) =>
    Promise.all(Array.from({ length: 8 }, () => readText(piecesOf(100_000), 1_000_000).then(step))),
  );
  expect(reads).toEqual(Array.from({ length: 8 }, () => 1));
});

it("returns small texts at once", async () => {
  const reads = await stepsByTurn((step) =>
    Promise.all(Array.from({ length: 8 }, () => readText(piecesOf(1_000), 1_000_000).then(step))),
  );
  expect(reads).toEqual([8]);
});
