import { expect, it } from "vitest";
import { endOf, TextEnd } from "../../src/plugin/text-pieces.js";

it.each<[what: string, maxCharacters: number, pieces: string[], text: string, words: string, lines: string]>([
  ["nothing", 9, [], "", "", ""],
  ["all of a short one", 9, ["one", " two"], "one two", "one two", "one two"],
  ["all that fits exactly", 7, ["one", "\ntwo"], "one\ntwo", "one\ntwo", "one\ntwo"],
  ["the end", 6, ["one two", "\nsix"], "wo\nsix", "…\nsix", "six"],
  ["the end, after earlier cuts", 3, ["one two", "\n", "x"], "o\nx", "…\nx", "x"],
  ["a single word", 3, ["secret"], "ret", "…", ""],
  ["no half of a pair", 3, ["😀 x"], " x", "… x", ""],
  ["nothing of it", 0, ["one"], "", "…", ""],
])("keeps %s", (_what, maxCharacters, pieces, text, words, lines) => {
  const bytes = pieces.map((piece) => Buffer.from(piece));
  // However it is cut into pieces.
  for (const cut of [bytes, [...Buffer.concat(bytes)].map((byte) => Uint8Array.of(byte))]) {
    const end = new TextEnd(maxCharacters);
    for (const piece of cut) end.push(piece);
    expect([end.text, end.words, end.lines]).toEqual([text, words, lines]);
  }
});

it("has what arrived of a stream that breaks", async () => {
  async function* broken() {
    yield Buffer.from("one two");
    throw new Error("killed");
  }
  expect(await endOf(broken(), 3)).toBe("two");
});
