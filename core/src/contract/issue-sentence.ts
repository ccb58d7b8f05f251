import type { z } from "zod";
import { nearestKey } from "./spelling.js";

type Found = z.core.$ZodIssue;

/** Of a union: the issues of the variant that was meant, or what every variant expects. */
export type UnionReading = { readonly issues: readonly Found[] } | { readonly sentence: string };

/** The variant that fits the value's type; if none does, what each expects. Pure. */
export function readUnion(found: z.core.$ZodIssueInvalidUnion, value: unknown): UnionReading {
  if (found.errors.length === 0) {
    const options = "options" in found && Array.isArray(found.options) ? found.options : [];
    return { sentence: oneOf(options, value) };
  }
  const chosen = found.errors.find((issues) => !issues.some(isOfAnotherType));
  if (chosen !== undefined) return { issues: chosen };
  const enumerated = found.errors
    .flat()
    .find((issue) => issue.code === "invalid_value" && issue.values.some((one) => typeof one === "string"));
  if (enumerated?.code === "invalid_value" && typeof value === "string")
    return { sentence: oneOf(enumerated.values, value, otherTypes(found.errors.flat())) };
  const expected = found.errors.flat().map(expectation).join(", or ");
  if (value === undefined) return { sentence: `is required: ${expected}` };
  return { sentence: `must be ${expected}${receivedValue(value)}` };
}

/** What a union takes beside its names, such as the object that says more than they can. */
function otherTypes(issues: readonly Found[]): readonly string[] {
  return issues.filter((issue) => issue.code === "invalid_type").map(expectation);
}

function isOfAnotherType(issue: Found): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

function expectation(issue: Found): string {
  if (issue.code === "invalid_value") return choices(issue.values);
  return issue.code === "invalid_type" ? typeName(issue.expected) : issue.message;
}

/** One issue as a predicate that names the fix: "must be a number, not a string". The value is never repeated. Pure. */
export function issueSentence(found: Found, value: unknown): string {
  switch (found.code) {
    case "invalid_type":
      return value === undefined
        ? `is required: ${typeName(found.expected)}`
        : `must be ${typeName(found.expected)}${found.expected === "int" ? "" : receivedValue(value)}`;
    case "invalid_value":
      return oneOf(found.values, value);
    case "too_big":
      return tooMuch(found, value);
    case "too_small":
      return tooLittle(found);
    case "not_multiple_of":
      return `must be a multiple of ${found.divisor}`;
    default:
      return found.message;
  }
}

function tooLittle({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  const min = minimum.toLocaleString("en");
  if (origin !== "string" && origin !== "array")
    return inclusive === true ? `must be ${min} or more` : `must be more than ${min}`;
  if (minimum <= 1) return "must not be empty";
  return origin === "string"
    ? `must have ${min} characters or more: send a longer one`
    : `must have ${min} entries or more: send more`;
}

function tooMuch(found: z.core.$ZodIssueTooBig, value: unknown): string {
  const max = found.maximum.toLocaleString("en");
  if (found.origin === "array" && Array.isArray(value)) {
    return `has ${value.length.toLocaleString("en")} entries, ${max} at most: send fewer`;
  }
  return found.origin === "string" ? `must have ${max} characters at most` : `must be ${max} at most`;
}

function oneOf(allowed: readonly unknown[], value: unknown, others: readonly string[] = []): string {
  const meant =
    typeof value === "string"
      ? nearestKey(
          value,
          allowed.filter((name) => typeof name === "string"),
        )
      : undefined;
  return `must be ${[choices(allowed), ...others].join(", or ")}${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
}

function choices(allowed: readonly unknown[]): string {
  const names = allowed.map((name) => JSON.stringify(name));
  return names.length === 1 ? names.join() : `one of ${names.join(", ")}`;
}

const typeNames: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

function typeName(expected: string): string {
  return typeNames[expected] ?? expected;
}

function receivedValue(value: unknown): string {
  if (value === null) return ", not null";
  if (Array.isArray(value)) return ", not a list";
  return `, not ${typeName(typeof value)}`;
}
