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
  /** What a key of it is called. Default: `field`, of a request. */
  readonly keyName?: "field" | "setting";
}

/** Issues that are reported at most, so that the response stays readable and small. */
export const maxIssues = 100;

/**
 * What zod found, as paths and sentences that name the fix; beyond `maxIssues` not all of it. A value is never
 * repeated. Pure.
 */
export function readableIssues(found: readonly SchemaIssue[], validated: Validated): Issue[] {
  const issues: Issue[] = [];
  for (const issue of found) {
    if (issues.length > maxIssues) break;
    issues.push(...readable(issue, validated));
  }
  return issues;
}

function readable(found: SchemaIssue, validated: Validated): Issue[] {
  const at = below(validated, found.path);
  switch (found.code) {
    case "unrecognized_keys":
      return found.keys.slice(0, maxIssues + 1).map((key) => unknownKey(key, at));
    case "invalid_union":
      return ofUnion(found, at);
    case "invalid_key":
      return found.issues.map((inner) => issueAt(at, `the name ${issueSentence(inner, undefined)}`));
    default:
      return [issueAt(at, sentenceOf(found, at.value))];
  }
}

/** A schema's own message, where it has one. */
function sentenceOf(found: SchemaIssue, value: unknown): string {
  return /^(Invalid|Too) /.test(found.message) ? issueSentence(found, value) : found.message;
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
function ofUnion(found: z.core.$ZodIssueInvalidUnion, at: Validated): Issue[] {
  // A union's own message says more about it than its variants do.
  if (!found.message.startsWith("Invalid ")) return [issueAt(at, found.message)];
  const read = readUnion(found, at.value);
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

/** `customTools[2].callRef`; a name that is no word of the wire is quoted, and cut. */
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

/** Of a union: the issues of the variant that was meant, or what every variant expects. */
type UnionReading = { readonly issues: readonly SchemaIssue[] } | { readonly sentence: string };

/** The variant that fits the value's type; if none does, what each expects. Pure. */
function readUnion(found: z.core.$ZodIssueInvalidUnion, value: unknown): UnionReading {
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

/** One issue as a predicate that names the fix: "must be a number, not a string". The value is never repeated. Pure. */
function issueSentence(found: SchemaIssue, value: unknown): string {
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
