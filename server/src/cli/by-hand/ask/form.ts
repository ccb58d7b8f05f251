import { z } from "zod";
import type { Reading } from "./terminal.js";

/** A value of a form, as ACP and MCP have them. */
export type FieldValue = string | number | boolean | readonly string[];

/** One line that a person fills in. */
export interface Field {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly type: "string" | "number" | "integer" | "boolean" | "array";
  /** The values that it takes, with how each is shown. Absent: any. */
  readonly choices?: readonly Choice[];
  readonly required: boolean;
  readonly default?: FieldValue;
}

interface Choice {
  readonly value: string;
  readonly title: string;
}

/** A form with more fields, or more choices of one, is declined. */
const maxFields = 64;
const maxChoices = 200;

const titled = z.looseObject({ const: z.string(), title: z.string().optional() });
const choicesSchema = z.looseObject({
  enum: z.array(z.string()).max(maxChoices).optional(),
  enumNames: z.array(z.string()).optional(),
  oneOf: z.array(titled).max(maxChoices).optional(),
  anyOf: z.array(titled).max(maxChoices).optional(),
});
const propertySchema = choicesSchema.extend({
  type: z.enum(["string", "number", "integer", "boolean", "array"]),
  title: z.string().optional(),
  description: z.string().optional(),
  default: z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).optional(),
  items: choicesSchema.optional(),
});
const formSchema = z.looseObject({
  properties: z.record(z.string(), propertySchema).default({}),
  required: z.array(z.string()).default([]),
});

/** The fields of an elicitation's form: a flat JSON Schema. Undefined where a terminal can't ask for it. Pure. */
export function fieldsOf(form: unknown): readonly Field[] | undefined {
  const parsed = formSchema.safeParse(form);
  if (!parsed.success) return undefined;
  const { properties, required } = parsed.data;
  const entries = Object.entries(properties);
  if (entries.length > maxFields) return undefined;
  return entries.map(([name, property]) => ({
    name,
    title: property.title ?? name,
    description: property.description,
    type: property.type,
    choices: choicesOf(property.items ?? property),
    required: required.includes(name),
    default: property.default,
  }));
}

/** The value that a typed line gives the field; undefined leaves it out. Pure. */
export function readField(field: Field, line: string): Reading<FieldValue | undefined> {
  if (line === "") {
    if (field.default !== undefined) return { value: field.default };
    return field.required ? { problem: "It is required." } : { value: undefined };
  }
  switch (field.type) {
    case "boolean":
      if (/^(y(es)?|true)$/i.test(line)) return { value: true };
      return /^(no?|false)$/i.test(line) ? { value: false } : { problem: "Answer yes or no." };
    case "integer":
    case "number": {
      const number = Number(line);
      if (!Number.isFinite(number)) return { problem: "It must be a number." };
      if (field.type === "integer" && !Number.isInteger(number))
        return { problem: "It must be a whole number." };
      return { value: number };
    }
    case "array": {
      const values = line.split(",").map((part) => chosen(field, part.trim()));
      const chosenValues = values.filter((value) => value !== undefined);
      return chosenValues.length === values.length ? { value: chosenValues } : { problem: oneOf(field) };
    }
    case "string": {
      const value = chosen(field, line);
      return value === undefined ? { problem: oneOf(field) } : { value };
    }
  }
}

function choicesOf(given: z.infer<typeof choicesSchema>): readonly Choice[] | undefined {
  const { enum: values, enumNames = [], oneOf: exactly, anyOf } = given;
  const named = exactly ?? anyOf;
  if (named !== undefined) return named.map(({ const: value, title = value }) => ({ value, title }));
  return values?.map((value, index) => ({ value, title: enumNames[index] ?? value }));
}

/** The choice that a text names by its number, value or title. Undefined: none. */
function chosen({ choices }: Field, text: string): string | undefined {
  if (choices === undefined) return text;
  const byNumber = /^\d+$/.test(text) ? choices[Number(text) - 1] : undefined;
  return (choices.find(({ value, title }) => value === text || title === text) ?? byNumber)?.value;
}

function oneOf({ choices = [], type }: Field): string {
  const what = type === "array" ? "Choose from the numbers, with commas between them" : "Choose a number";
  return `${what}: 1 to ${choices.length}.`;
}
