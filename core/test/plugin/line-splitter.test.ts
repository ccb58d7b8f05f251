import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineSplitter, type LineSplitterOptions } from "../../src/plugin/index.js";

/** The lines of pieces, and of what follows the last line feed. */
function split(pieces: readonly Uint8Array[], options?: LineSplitterOptions): string[] {
  const splitter = new LineSplitter(options);
  const lines = pieces.flatMap((piece) => {
    const complete = [...splitter.push(piece)];
    // A pipe may use its memory again.
    piece.fill(0x21);
    return complete;
  });
  const last = splitter.end();
  return last === undefined ? lines : [...lines, last];
}
const bytes = (text: string) => Buffer.from(text, "utf8");

describe("a stream of lines", () => {
  it("is split in the same way, however it is cut into pieces", () => {
    const line = fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => text.replaceAll("\n", ""));
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(line), fc.string({ minLength: 1 }), sizes, (lines, end, sizes) => {
        const last = end.replaceAll("\n", "!");
        const whole = bytes([...lines, last].join("\n"));
        const pieces: Uint8Array[] = [];
        for (let start = 0; start < whole.length; ) {
          const size = sizes[pieces.length % sizes.length] ?? 1;
          pieces.push(Uint8Array.from(whole.subarray(start, start + size)));
          start += size;
        }
        const characters = new LineSplitter();
        for (const piece of pieces) for (const _ of characters.push(piece));
        expect(characters.openCharacters).toBe(last.length);
        expect(split(pieces)).toEqual([...lines, last]);
      }),
    );
  });

  it("has no last line after a line feed", () => {
    expect(split([])).toEqual([]);
    expect(split([bytes("a\n")])).toEqual(["a"]);
    expect(split([bytes("a\n\n")])).toEqual(["a", ""]);
  });

  it("replaces bytes that aren't UTF-8", () => {
    expect(split([Buffer.from([0x61, 0xff, 0x0a]), Buffer.from([0x80])])).toEqual(["a\ufffd", "\ufffd"]);
  });

  it("leaves out a line over the limit, and goes on after it", () => {
    const long = Array.from({ length: 1_000 }, () => bytes("xü".repeat(30)));
    const pieces = () => [
      bytes("first\n"),
      ...long.map((piece) => Uint8Array.from(piece)),
      bytes("\nnext\nend"),
    ];
    expect(split(pieces(), { maxBytes: 100 })).toEqual(["first", "next", "end"]);
    const standIn = (characters: number) => `[${characters}]`;
    expect(split(pieces(), { maxBytes: 100, standIn })).toEqual(["first", "[60000]", "next", "end"]);
    expect(split([bytes("x".repeat(101))], { maxBytes: 100, standIn })).toEqual(["[101]"]);
    expect(split([bytes(`${"x".repeat(101)}\n`)], { maxBytes: 100, standIn })).toEqual(["[101]"]);
    // The control: lines of just that length.
    expect(split([bytes(`${"x".repeat(100)}\n`), bytes("y".repeat(100))], { maxBytes: 100 })).toHaveLength(2);
  });

  it("fails at once for a line over the limit, after those before it", () => {
    const splitter = new LineSplitter({ maxBytes: 4, tooLong: () => new Error("too long") });
    const lines: string[] = [];
    const read = () => {
      for (const line of splitter.push(bytes("one\ntwo\nthree"))) lines.push(line);
    };
    expect(read).toThrow("too long");
    expect(lines).toEqual(["one", "two"]);
  });
});
