import { describe, expect, test } from "vitest";
import { ArgumentsCheck } from "../../../src/call/arguments/check.js";

const tuple = {
  type: "object",
  properties: { pair: { type: "array", items: [{ type: "string" }, { type: "number" }] } },
};
const prefixed = {
  type: "object",
  properties: { pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] } },
};
const draft07 = "http://json-schema.org/draft-07/schema#";
const draft2020 = "https://json-schema.org/draft/2020-12/schema";

function problem(
  inputSchema: Record<string, unknown>,
  given: Record<string, unknown>,
  name = "tool",
): string | undefined {
  return new ArgumentsCheck().problem(name, JSON.stringify(inputSchema), JSON.stringify(given));
}

describe("arguments are checked before anything runs", () => {
  const schema = {
    type: "object",
    required: ["city", "days"],
    additionalProperties: false,
    properties: {
      city: { type: "string", minLength: 2 },
      days: { type: "integer", maximum: 10 },
      where: { type: "object", required: ["lat"], properties: { lat: { type: "number" } } },
    },
  };

  test.each<[what: string, given: Record<string, unknown>, message: string | undefined]>([
    ["right", { city: "Bern", days: 3, where: { lat: 1 } }, undefined],
    [
      "missing",
      {},
      "Tool 'tool' missing required argument(s): city, days. Retry the tool call with those argument fields populated.",
    ],
    [
      "missing within",
      { city: "Bern", days: 1, where: {} },
      "Tool 'tool' missing required argument(s): where.lat. Retry the tool call with those argument fields populated.",
    ],
    [
      "of another type",
      { city: 1, days: 3 },
      "Tool 'tool' was given wrong arguments: city must be string. Correct them and call it again.",
    ],
    [
      "too much",
      { city: "Bern", days: 11 },
      "Tool 'tool' was given wrong arguments: days must be <= 10. Correct them and call it again.",
    ],
    [
      "unknown",
      { city: "Bern", days: 1, town: "x" },
      "Tool 'tool' was given wrong arguments: town must NOT have additional properties. Correct them and call it again.",
    ],
    [
      "several at once",
      { city: "B", days: "x" },
      "Tool 'tool' was given wrong arguments: city must NOT have fewer than 2 characters; days must be integer. Correct them and call it again.",
    ],
  ])("%s", (_what, given, message) => {
    expect(problem(schema, given)).toBe(message);
  });
});

describe("both dialects work, declared or not", () => {
  test.each([
    ["draft-07, said", { $schema: draft07, ...tuple }],
    ["draft-07, unsaid", tuple],
    ["2020-12, said", { $schema: draft2020, ...prefixed }],
    ["2020-12, unsaid", prefixed],
  ])("a tuple of %s", (_what, schema) => {
    expect(problem(schema, { pair: ["a", 1] })).toBeUndefined();
    expect(problem(schema, { pair: ["a", "b"] })).toContain("pair.1 must be number");
  });

  test("definitions are found in both places", () => {
    const properties = { a: { $ref: "#/definitions/A" }, b: { $ref: "#/$defs/B" } };
    const schema = {
      type: "object",
      properties,
      definitions: { A: { type: "string" } },
      $defs: { B: { type: "number" } },
    };
    for (const $schema of [draft07, draft2020]) {
      expect(problem({ $schema, ...schema }, { a: "x", b: 1 })).toBeUndefined();
      expect(problem({ $schema, ...schema }, { a: 1, b: 1 })).toContain("a must be string");
    }
  });
});

describe("an unusable schema", () => {
  test.each([
    ["an unknown type", { type: "objekt" }],
    ["a reference to nowhere", { type: "object", properties: { a: { $ref: "#/$defs/Missing" } } }],
    ["a tuple where 2020-12 is said", { $schema: draft2020, ...tuple }],
    ["a broken pattern", { type: "object", properties: { a: { type: "string", pattern: "(" } } }],
  ])("%s: the tool can't be called, and the model is told why", (_what, schema) => {
    expect(problem(schema, {})).toMatch(
      /^Tool 'tool' can't be called: its inputSchema is not a valid JSON Schema/,
    );
  });

  test("an asynchronous one is checked synchronously: a promise would always be true", () => {
    const schema = { $async: true, type: "object", required: ["a"] };
    expect(problem(schema, {})).toContain("missing required argument(s): a");
  });

  test("two tools may have the same $id", () => {
    const all = new ArgumentsCheck();
    const schema = (type: string) =>
      JSON.stringify({
        $id: "https://x.example/same",
        type: "object",
        properties: { a: { $id: "#inner", type } },
      });
    expect(all.problem("one", schema("string"), '{"a": "x"}')).toBeUndefined();
    expect(all.problem("two", schema("number"), '{"a": "x"}')).toContain("a must be number");
  });

  test("no schema can refer to one of another request", () => {
    const all = new ArgumentsCheck();
    const theirs = { $id: "https://x.example/theirs", type: "object" };
    expect(all.problem("theirs", JSON.stringify(theirs), "{}")).toBeUndefined();
    const ours = { type: "object", properties: { a: { $ref: "https://x.example/theirs" } } };
    expect(all.problem("ours", JSON.stringify(ours), "{}")).toContain("can't resolve reference");
  });

  test("arguments can't access prototypes", () => {
    const given: Record<string, unknown> = JSON.parse('{"__proto__": {"polluted": true}}');
    expect(problem({ type: "object", additionalProperties: false, properties: {} }, given)).toContain(
      "__proto__",
    );
    expect({}).not.toHaveProperty("polluted");
  });
});

test("of many problems the first are reported, with the number of the rest", () => {
  const schema = { type: "object", additionalProperties: { type: "string" } };
  const given = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field${index}`, index]));
  const recorded = problem(schema, given) ?? "";
  expect(recorded).toContain("field19 must be string; and 4980 more. Correct them");
  expect(recorded.length).toBeLessThan(5_000);
});
