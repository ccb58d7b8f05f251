import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { stdinOf } from "../../src/program/inside-program.js";

const known = Array.from({ length: 50_000 }, (_, at) => [`${"folder/".repeat(20)}${at}`, `state ${at} 😀`]);

it("gives a program its text and its wish, whatever is in it", async () => {
  const wish = { known, odd: 'a"\\\u0000\ud800', none: undefined, empty: [] };
  const input = Buffer.concat(await stdinOf("#collector", wish));
  const end = input.indexOf("\n");
  const [program = 0, asked = 0] = input.toString("utf8", 0, end).split(" ").map(Number);
  expect(input.length).toBe(end + 1 + program + asked);
  expect(input.toString("utf8", end + 1 + program)).toBe(JSON.stringify(wish));
});

it("lets others act while it writes a wish that names many files", async () => {
  let turns = 0;
  let isDone = false;
  const counting = (async () => {
    for (; !isDone; turns += 1) await nextTurn();
  })();
  await stdinOf("#collector", { known: [] });
  const before = turns;
  const pieces = await stdinOf("#collector", { known });
  isDone = true;
  await counting;
  expect(turns - before).toBeGreaterThan(50);
  expect(Math.max(...pieces.slice(2).map(({ length }) => length))).toBeLessThan(200_000);
});
