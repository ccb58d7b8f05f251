import { describe, expect, it } from "vitest";
import { ArgumentsCheck } from "../../src/call/arguments/check.js";
import { misshapenSchemas } from "../../src/parse/checks.js";

const broken: readonly [where: string, schema: Record<string, unknown>][] = [
  ["type", { type: "objekt" }],
  ["type", { type: [] }],
  ["properties", { properties: 3 }],
  ["properties.city", { properties: { city: "string" } }],
  ["properties.city.type", { properties: { city: { type: "text" } } }],
  ["required", { required: true }],
  ["items[1].minLength", { items: [true, { minLength: -1 }] }],
  ["anyOf", { anyOf: [] }],
  ["oneOf[0].not.enum", { oneOf: [{ not: { enum: "a" } }] }],
  ["properties.a.pattern", { properties: { a: { pattern: 1 } } }],
  ["additionalProperties", { additionalProperties: "no" }],
];

const whole: readonly Record<string, unknown>[] = [
  {},
  { type: "object", properties: { type: { type: "string" }, required: { type: "boolean" } } },
  { properties: { constructor: { type: "string" } }, required: ["constructor"], additionalProperties: false },
  { items: [{ type: "string" }], additionalItems: false },
  { "x-order": 1, type: ["string", "null"], enum: [null, "a"], default: { type: "anything" } },
  { $ref: "#/$defs/a", $defs: { a: { if: { minimum: 0.5 }, else: false } } },
];

const compiles = (schema: object) =>
  new ArgumentsCheck().problem("t", JSON.stringify(schema), "{}")?.includes("not a valid JSON Schema") !==
  true;

describe("a tool's inputSchema", () => {
  it.each(broken)("is refused for its %s", (where, inputSchema) => {
    expect(misshapenSchemas([{ inputSchema: {} }, { inputSchema: inputSchema as never }])).toEqual([
      { path: `customTools[1].inputSchema.${where}`, message: expect.stringContaining("JSON Schema") },
    ]);
    // Before, the first call of the tool found it.
    expect(compiles(inputSchema)).toBe(false);
  });

  it.each(whole.map((schema) => [JSON.stringify(schema), schema] as const))("may be %s", (_, inputSchema) => {
    expect(misshapenSchemas([{ inputSchema: inputSchema as never }])).toEqual([]);
    expect(compiles(inputSchema)).toBe(true);
  });
});
