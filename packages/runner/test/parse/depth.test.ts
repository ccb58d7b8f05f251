import { limits } from "@ambit/core/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pathBeyondDepth } from "../../src/json-values.js";
import { parseRunRequest } from "../../src/parse/parse.js";

function nested(levels: number, by: (inner: unknown) => unknown): unknown {
  let value: unknown = "x";
  for (let level = 0; level < levels; level += 1) value = by(value);
  return value;
}

const inList = (inner: unknown) => [inner];
const inObject = (inner: unknown) => ({ a: inner });

describe("the depth of a value", () => {
  test.each<[what: string, value: unknown, max: number, path: unknown]>([
    ["a text", "x", 0, undefined],
    ["just deep enough", nested(3, inList), 3, undefined],
    ["one level more", nested(4, inList), 3, [0, 0, 0]],
    ["objects", nested(4, inObject), 3, ["a", "a", "a"]],
    ["the place is named", { a: [1], b: [0, { c: { d: {} } }] }, 3, ["b", 1, "c"]],
  ])("%s", (_what, value, max, path) => {
    expect(pathBeyondDepth(value, max)).toEqual(path);
  });

  test("equals a recursive count for any value", () => {
    const depthOf = (value: unknown): number =>
      typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 1, max: 7 }), (value, max) => {
        expect(pathBeyondDepth(value, max) === undefined).toBe(depthOf(value) <= max);
      }),
    );
  });

  test("a million levels overflow nothing", () => {
    expect(pathBeyondDepth(nested(1_000_000, inList))).toHaveLength(limits.depth);
  });
});

test.each([
  ["messages", { messages: nested(4_000, inList) }, "messages[0][0]"],
  [
    "a call's input in the history",
    {
      messages: [
        {
          role: "assistant",
          content: [{ type: "tool_call", toolCallId: "a", input: nested(4_000, inObject) }],
        },
      ],
    },
    "messages[0].content",
  ],
  [
    "a tool's schema",
    { customTools: [{ name: "a", inputSchema: nested(4_000, inObject) }] },
    "customTools[0].inputSchema",
  ],
  ["an unknown field", { nonsense: nested(4_000, inObject) }, "nonsense.a.a"],
  ["the body itself", nested(4_000, inList), "[0][0][0]"],
])("a request with nesting beyond the limit is refused by its place: %s", (_what, body, path) => {
  expect(parseRunRequest(body)).toEqual({
    ok: false,
    issues: [
      { path, message: "holds more than 100 levels of lists and objects within each other: send fewer" },
    ],
  });
});
