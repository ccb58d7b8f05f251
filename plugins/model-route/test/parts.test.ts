import { describe, expect, it } from "vitest";
import { partsOf } from "../src/request/shapes/parts.js";

describe("the parts of a request", () => {
  it.each([
    ["a small one", { a: [1, 2] }, 10, [{ a: [1, 2] }]],
    ["a list", { a: [1, 2, 3, 4, 5] }, 3, [{ a: [1, 2, 3] }, { a: [4, 5] }, {}]],
    ["members beside it", { m: "x", a: [1, 2, 3], b: 1 }, 3, [{ a: [1, 2, 3] }, { m: "x", b: 1 }]],
    ["a list in a list", { a: [0, [1, 2, 3], 4] }, 3, [{ a: [0] }, { a: [[1, 2, 3]] }, { a: [4] }, {}]],
    [
      "an object with a type",
      [{ type: "t", id: 1, content: [1, 2, 3, 4] }],
      3,
      [[{ type: "t", content: [1, 2, 3] }], [{ type: "t", content: [4] }], [{ type: "t", id: 1 }]],
    ],
    ["a type that isn't a text", { type: [1, 2, 3], a: 1 }, 3, [{ type: [1, 2, 3] }, { a: 1 }]],
    ["an empty list", { a: [], b: [[]], c: 1 }, 3, [{ a: [], b: [[]] }, { c: 1 }]],
  ])("of %s", (_what, value, maxValues, parts) => {
    const found = [...partsOf(value, maxValues)];
    for (const part of parts) expect(found).toContainEqual(part);
  });

  it("hold each value at its place, and __proto__ stays a member", () => {
    const value: unknown = JSON.parse('{"a":[{"__proto__":[1,2,3,4,5]},{"b":{"c":[1,2]}}]}');
    const found = [...partsOf(value, 3)].map((part) => JSON.stringify(part));
    expect(found).toContain('{"a":[{"__proto__":[1,2,3]}]}');
    expect(found).toContain('{"a":[{"b":{"c":[1,2]}}]}');
  });

  it("of a long request are many", () => {
    const messages = Array.from({ length: 20_000 }, () => ({
      role: "user",
      content: [{ type: "text", text: "a" }],
    }));
    const found = [...partsOf({ model: "m", messages, tools: Array(5_000).fill({}) })];
    expect(found.length).toBeGreaterThan(300);
    const values = found.flatMap((part) =>
      typeof part === "object" && part !== null && "messages" in part && Array.isArray(part.messages)
        ? part.messages
        : [],
    );
    expect(values).toHaveLength(20_000);
  });
});
