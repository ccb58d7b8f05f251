import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { shortLine } from "../../src/driver/json-reading.js";

describe("a line of untrusted text", () => {
  it.each([
    "plain",
    "\u001b[1;31mred\u001b[0m",
    "\u009b38;5;1mred\u009b0m",
    "a\u001b]8;;https://example.com\u0007link\u001b]8;;\u0007b",
    "a\u001b]0;title\u001b\\b",
    "\u001b(0lqqk\u001b(B",
    "\u001b[?25l\u001b[2K\u001b[1Gdone",
    "\u001b]without an end",
    "\u001b",
  ])("%j has no control sequence, as with Node's own function", (text) => {
    expect(shortLine(text)).toBe(
      stripVTControlCharacters(text)
        .replace(/\p{Cc}+/gu, " ")
        .trim(),
    );
  });

  it("is cut", () => {
    expect(shortLine("x".repeat(501))).toBe(`${"x".repeat(500)}…`);
    expect(shortLine("x".repeat(500))).toBe("x".repeat(500));
    expect(shortLine(`${"\u001b[0m".repeat(1_000)}x`, 10)).toBe("…");
  });

  it.each(["\u001b]", "\u001b[;", "\u009b1;", "\u001b]\u0007", "\u001b];"])(
    "takes no longer for sequences without an end: %j",
    (begin) => {
      expect(shortLine(begin.repeat(2_000_000), 100).length).toBeLessThanOrEqual(101);
    },
  );
});
