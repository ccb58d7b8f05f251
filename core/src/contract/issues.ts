import type { z } from "zod";
import type { Issue } from "./result/failure.js";
import { type KnownShape, validatedShapeAt } from "./schema-fields.js";
import { nearestKey } from "./spelling.js";

type Path = readonly PropertyKey[];
type SchemaIssue = z.core.$ZodIssue;

/** The validated value, its level, and its place in the request or the configuration. */
export interface Validated {
  readonly value: unknown;
  readonly level: KnownShape | undefined;
  readonly path: Path;
  /** The word for one of its keys in messages. Default: `field`, as in a request. */
  readonly keyName?: "field" | "setting";
}

/** The most issues that are reported, so that the response stays readable and small. */
export const maxIssues = 100;

/**
 * Converts zod's issues into paths and sentences that name the fix; little more than `maxIssues` of them. A value is never
 * repeated. Pure.
 */
export function readableIssues(schemaIssues: readonly SchemaIssue[], validated: Validated): Issue[] {
  const issues: Issue[] = [];
  for (const issue of schemaIssues) {
    if (issues.length > maxIssues) break;
    issues.push(...readable(issue, validated));
  }
  return issues;
}

function readable(schemaIssue: SchemaIssue, validated: Validated): Issue[] {
  const at = below(validated, schemaIssue.path);
  switch (schemaIssue.code) {
    case "unrecognized_keys":
      return schemaIssue.keys.slice(0, maxIssues + 1).map((key) => unknownKey(key, at));
    case "invalid_union":
      return ofUnion(schemaIssue, at);
    case "invalid_key":
      return schemaIssue.issues.map((inner) => issueAt(at, `the name ${issueSentence(inner, undefined)}`));
    default:
      return [issueAt(at, sentenceOf(schemaIssue, at.value))];
  }
}

/** The schema's own message, or a sentence in place of zod's default message. */
function sentenceOf(schemaIssue: SchemaIssue, value: unknown): string {
  return /^(Invalid|Too) /.test(schemaIssue.message)
    ? issueSentence(schemaIssue, value)
    : schemaIssue.message;
}

function issueAt({ path }: Validated, message: string): Issue {
  return { path: pathText(path), message };
}

function below({ value, level, path, keyName }: Validated, steps: Path): Validated {
  return {
    value: valueAt(value, steps),
    level: validatedShapeAt(level, steps),
    path: [...path, ...steps],
    keyName,
  };
}

function unknownKey(key: string, at: Validated): Issue {
  const { level, path, keyName = "field" } = at;
  const names = namesAt(level);
  const meant = nearestKey(key, names);
  const settings = names.filter((name) => !name.startsWith("$")).join(", ");
  const otherwise = keyName === "field" || settings === "" ? "remove it" : `known are ${settings}`;
  const fix = meant === undefined ? otherwise : `did you mean \`${meant}\`?`;
  return { path: pathText([...path, key]), message: `is not a known ${keyName}: ${fix}` };
}

function namesAt(level: KnownShape | undefined): readonly string[] {
  if (level?.kind === "object") return [...level.keys.keys()];
  return level?.kind === "map" ? level.names : [];
}

/** The issues of the variant that fits the value's type; if none does, what each expects. */
function ofUnion(schemaIssue: z.core.$ZodIssueInvalidUnion, at: Validated): Issue[] {
  // A union's own message says more about it than its variants do.
  if (!schemaIssue.message.startsWith("Invalid ")) return [issueAt(at, schemaIssue.message)];
  const read = readUnion(schemaIssue, at.value);
  return "issues" in read ? readableIssues(read.issues, at) : [issueAt(at, read.sentence)];
}

function valueAt(body: unknown, path: Path): unknown {
  let value = body;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

/** Writes a path as `customTools[2].callRef`; a name that no schema could have is quoted, and cut. */
export function pathText(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$]{0,63}$/.test(String(step)))
      text += text === "" ? String(step) : `.${String(step)}`;
    else text += `[${JSON.stringify(String(step).slice(0, 64))}]`;
  }
  return text;
}

/** How a value fails a union: by the issues of the intended variant, or by what every variant expects. */
type UnionReading = { readonly issues: readonly SchemaIssue[] } | { readonly sentence: string };

/** The variant that fits the value's type; if none does, what each expects. Pure. */
function readUnion(schemaIssue: z.core.$ZodIssueInvalidUnion, value: unknown): UnionReading {
  if (schemaIssue.errors.length === 0) {
    const options = "options" in schemaIssue && Array.isArray(schemaIssue.options) ? schemaIssue.options : [];
    return { sentence: oneOf(options, value) };
  }
  const chosen = schemaIssue.errors.find((issues) => !issues.some(isOfAnotherType));
  if (chosen !== undefined) return { issues: chosen };
  const enumerated = schemaIssue.errors
    .flat()
    .find(
      (issue) => issue.code === "invalid_value" && issue.values.some((option) => typeof option === "string"),
    );
  if (enumerated?.code === "invalid_value" && typeof value === "string")
    return { sentence: oneOf(enumerated.values, value, otherTypes(schemaIssue.errors.flat())) };
  const expected = schemaIssue.errors.flat().map(expectation).join(", or ");
  if (value === undefined) return { sentence: `is required: ${expected}` };
  return { sentence: `must be ${expected}${receivedValue(value)}` };
}

/** The types that a union accepts besides its enumerated values, such as an object with more details. */
function otherTypes(issues: readonly SchemaIssue[]): readonly string[] {
  return issues.filter((issue) => issue.code === "invalid_type").map(expectation);
}

function isOfAnotherType(issue: SchemaIssue): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

function expectation(issue: SchemaIssue): string {
  if (issue.code === "invalid_value") return choices(issue.values);
  return issue.code === "invalid_type" ? typeName(issue.expected) : issue.message;
}

/** Writes an issue as a predicate that names the fix: "must be a number, not a string". Never repeats the value. Pure. */
function issueSentence(schemaIssue: SchemaIssue, value: unknown): string {
  switch (schemaIssue.code) {
    case "invalid_type":
      return value === undefined
        ? `is required: ${typeName(schemaIssue.expected)}`
        : `must be ${typeName(schemaIssue.expected)}${schemaIssue.expected === "int" ? "" : receivedValue(value)}`;
    case "invalid_value":
      return oneOf(schemaIssue.values, value);
    case "too_big":
      return tooMuch(schemaIssue, value);
    case "too_small":
      return tooLittle(schemaIssue);
    case "not_multiple_of":
      return `must be a multiple of ${schemaIssue.divisor}`;
    default:
      return schemaIssue.message;
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

function tooMuch(schemaIssue: z.core.$ZodIssueTooBig, value: unknown): string {
  const max = schemaIssue.maximum.toLocaleString("en");
  if (schemaIssue.origin === "array" && Array.isArray(value)) {
    return `has ${value.length.toLocaleString("en")} entries, ${max} at most: send fewer`;
  }
  return schemaIssue.origin === "string" ? `must have ${max} characters at most` : `must be ${max} at most`;
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
