import { describe, expect, it } from "vitest";
import { type Field, fieldsOf, readField } from "../../../src/cli/by-hand/ask/form.js";

const field = (property: object, required = false): Field => {
  const [only] =
    fieldsOf({ type: "object", properties: { it: property }, required: required ? ["it"] : [] }) ?? [];
  if (only === undefined) throw new Error("no field");
  return only;
};

const color = { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "g" }] };
const tags = { type: "array", items: { type: "string", enum: ["a", "b", "c"] } };

describe("a form at the terminal", () => {
  it.each<[string, object, string, unknown]>([
    ["text", { type: "string" }, "as it is", "as it is"],
    ["a number", { type: "number" }, "1.5", 1.5],
    ["a whole number", { type: "integer" }, "-3", -3],
    ["yes", { type: "boolean" }, "y", true],
    ["no", { type: "boolean" }, "No", false],
    ["a choice by number", color, "2", "g"],
    ["a choice by title", color, "Red", "r"],
    ["a choice by value", color, "r", "r"],
    ["a choice of an enum", { type: "string", enum: ["x"], enumNames: ["Ex"] }, "Ex", "x"],
    ["several choices", tags, "3, a", ["c", "a"]],
    ["nothing", { type: "string" }, "", undefined],
    ["the default", { type: "integer", default: 7 }, "", 7],
  ])("reads %s", (_, property, line, value) => {
    expect(readField(field(property), line)).toEqual({ value });
  });

  it.each<[string, object, string]>([
    ["a word for a number", { type: "number" }, "many"],
    ["infinity", { type: "number" }, "Infinity"],
    ["a fraction for a whole number", { type: "integer" }, "1.5"],
    ["a word for yes or no", { type: "boolean" }, "perhaps"],
    ["a choice that isn't there", color, "3"],
    ["one unknown among several", tags, "a, 9"],
    ["nothing for what is required", { type: "string" }, ""],
  ])("asks again for %s", (_, property, line) => {
    expect(readField(field(property, true), line)).toEqual({ problem: expect.stringMatching(/\S/) });
  });

  it("can't ask for what isn't flat, or has too many fields or choices", () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, { type: "string" }]));
    expect(fieldsOf({ properties: { nested: { type: "object" } } })).toBeUndefined();
    expect(fieldsOf({ properties: many(64) })).toHaveLength(64);
    expect(fieldsOf({ properties: many(65) })).toBeUndefined();
    const choices = (count: number) => ({ type: "string", enum: Array(count).fill("x") });
    expect(fieldsOf({ properties: { it: choices(200) } })).toHaveLength(1);
    expect(fieldsOf({ properties: { it: choices(201) } })).toBeUndefined();
  });
});
