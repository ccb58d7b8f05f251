import { expect, it } from "vitest";
import { collectEnd } from "../src/executor.js";

it.each([
  [0, ""],
  [1, "d"],
  [3, "bcd"],
  [4, "abcd"],
  [9, "abcd"],
])("the last %i characters of what was printed are kept", async (characters, kept) => {
  const printed = ReadableStream.from(["ab", "c", "d"].map((text) => new TextEncoder().encode(text)));
  expect(await collectEnd(printed, characters)).toBe(kept);
});
