import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type JsonLimits,
  JsonTooLarge,
  messageJsonLimits,
  parseBoundedJson,
  parseCountedJson,
} from "../../src/contract/index.js";

const wide: JsonLimits = { maxLength: 1_000_000, maxValues: 1_000_000, maxDepth: 1_000 };

/** Counts as the limits' documentation says, on the parsed value. */
function counted(value: unknown): { values: number; members: number } {
  if (typeof value !== "object" || value === null) return { values: 1, members: 0 };
  const isList = Array.isArray(value);
  const inner = Object.values(value).map(counted);
  const members = isList ? 0 : inner.length;
  return {
    values: inner.reduce((sum, one) => sum + one.values, 1 + members) + (inner.length === 0 ? 1 : 0),
    members: inner.reduce((sum, one) => sum + one.members, members),
  };
}

function exceeded(text: string, limits: Partial<JsonLimits>): keyof JsonLimits | undefined {
  try {
    parseBoundedJson(text, { ...wide, ...limits });
    return undefined;
  } catch (error) {
    if (error instanceof JsonTooLarge) return error.exceeded;
    throw error;
  }
}

describe("JSON within limits", () => {
  it("counts what JSON.parse returns, however the text is spaced and escaped", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom("", "\t", "\\  "), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent.trim() === "\\" ? "  " : indent);
        const parsed: unknown = JSON.parse(text);
        expect(parseCountedJson(text, wide)).toEqual({ value: parsed, ...counted(parsed) });
      }),
    );
  });

  it.each([
    { text: "[1,2,3]", limits: { maxValues: 4 }, beyond: { maxValues: 3 } },
    { text: '{"a":1,"b":[]}', limits: { maxValues: 6 }, beyond: { maxValues: 5 } },
    { text: "[[[0]]]", limits: { maxDepth: 3 }, beyond: { maxDepth: 2 } },
    { text: '"[[[,,,:::"', limits: { maxValues: 1, maxDepth: 0 }, beyond: { maxLength: 10 } },
    { text: '["\\"[[[[","\\\\",1]', limits: { maxValues: 4, maxDepth: 1 }, beyond: { maxValues: 3 } },
  ])("accepts $text at its limits, and refuses it one below", ({ text, limits, beyond }) => {
    expect(exceeded(text, limits)).toBeUndefined();
    expect(exceeded(text, beyond)).toBe(Object.keys(beyond)[0]);
  });

  it("says what is too much", () => {
    expect(() => parseBoundedJson("[".repeat(300))).toThrow(
      "holds more than 256 levels of lists and objects within each other",
    );
    expect(() => parseBoundedJson(`[${"1,".repeat(100_000)}1]`)).toThrow("holds more than 100,000 values");
  });

  it("leaves a text within the limits that isn't JSON to JSON.parse", () => {
    for (const text of ["", '"', '"\\', "[1,", "]]]]", "nul", '{"a"}'])
      expect(() => parseBoundedJson(text)).toThrow(SyntaxError);
  });

  it("refuses what would stall the process before it reads on", () => {
    const huge = { ...messageJsonLimits, maxLength: Number.POSITIVE_INFINITY };
    // Parsed, each takes seconds and gigabytes.
    for (const piece of ["{},", "[],", '"",', '"":0,', "[", '"'])
      expect(() => parseBoundedJson(piece.repeat(11_000_000), huge)).toThrow(JsonTooLarge);
  });

  it("counts in time that is linear in the text", () => {
    const strings = [`"${"\\\\".repeat(4_000_000)}`, '\\"'.repeat(4_000_000), `${"\\".repeat(8_000_000)}"`];
    for (const text of strings) expect(() => parseBoundedJson(text)).toThrow(SyntaxError);
  });
});
