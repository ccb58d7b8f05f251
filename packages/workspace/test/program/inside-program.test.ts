import { expect, it } from "vitest";
import { stdinOf } from "../../src/programs.js";

const known = Array.from({ length: 50_000 }, (_, at) => [`${"folder/".repeat(20)}${at}`, `state ${at} 😀`]);

it("gives a program its text and its wish, whatever is in it", async () => {
  const wish = { known, odd: 'a"\\\u0000\ud800', none: undefined, empty: [] };
  const input = Buffer.concat(await stdinOf("#collector", wish));
  const end = input.indexOf("\n");
  const [program = 0, asked = 0] = input.toString("utf8", 0, end).split(" ").map(Number);
  expect(input.length).toBe(end + 1 + program + asked);
  expect(input.toString("utf8", end + 1 + program)).toBe(JSON.stringify(wish));
});
