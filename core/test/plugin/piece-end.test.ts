import { expect, test } from "vitest";
import { wholeWords } from "../../src/plugin/index.js";

test.each([
  ["a short text", "a key: s3cret", 13, "a key: s3cret"],
  ["between two words", "a key: s3cret", 7, "a key: "],
  ["within a word", "a key: s3cret", 10, "a key: "],
  ["within quotes", `{"key":"s3cret"}`, 12, `{"key":"`],
  ["within the first word", "s3cret", 3, ""],
])("%s is cut before a word that doesn't fit", (_where, text, max, whole) => {
  expect(wholeWords(text, max)).toBe(whole);
});
