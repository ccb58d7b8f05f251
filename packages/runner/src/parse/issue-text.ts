import { type Issue, nearestKey } from "@ambit/core/contract";
import type { z } from "zod";
import { type Level, levelAt } from "./level.js";

type Path = readonly PropertyKey[];
type Found = z.core.$ZodIssue;

/** The validated value, and its place in the request. */
export interface Validated {
  readonly value: unknown;
  readonly level: Level | undefined;
  readonly path: Path;
}

/** Issues that are reported at most, so that the response stays readable and small. */
export const maxIssues = 100;

/**
 * What zod found, as paths and sentences that name the fix; beyond `maxIssues` not all of it. A value of the
 * request is never repeated.
 */
export function readableIssues(found: readonly Found[], validated: Validated): Issue[] {
  const issues: Issue[] = [];
  for (const issue of found) {
    if (issues.length > maxIssues) break;
    issues.push(...readable(issue, validated));
  }
  return issues;
}

function readable(found: Found, validated: Validated): Issue[] {
  const at = below(validated, found.path);
  switch (found.code) {
    case "unrecognized_keys":
      return found.keys.slice(0, maxIssues + 1).map((key) => unknownKey(key, at));
    case "invalid_union":
      return ofUnion(found, at);
    case "invalid_key":
      return found.issues.map((inner) => said(at, `the name ${messageOf(inner, undefined)}`));
    default:
      return [said(at, messageOf(found, at.value))];
  }
}

function said({ path }: Validated, message: string): Issue {
  return { path: pathText(path), message };
}

function below({ value, level, path }: Validated, steps: Path): Validated {
  return { value: valueAt(value, steps), level: levelAt(level, steps), path: [...path, ...steps] };
}

function unknownKey(key: string, at: Validated): Issue {
  const known = at.level?.kind === "object" ? [...at.level.keys.keys()] : [];
  const meant = nearestKey(key, known);
  const fix = meant === undefined ? "remove it" : `did you mean \`${meant}\`?`;
  return { path: pathText([...at.path, key]), message: `is not a known field: ${fix}` };
}

/** The issues of the variant that fits the value's type; if none does, what each expects. */
function ofUnion(found: z.core.$ZodIssueInvalidUnion, at: Validated): Issue[] {
  if (found.errors.length === 0) {
    const options = "options" in found && Array.isArray(found.options) ? found.options : [];
    return [said(at, oneOf(options, at.value))];
  }
  const chosen = found.errors.find((issues) => !issues.some(isOfAnotherType));
  if (chosen !== undefined) return readableIssues(chosen, at);
  const enumerated = found.errors.flat().find((issue) => issue.code === "invalid_value");
  if (enumerated !== undefined && typeof at.value === "string")
    return [said(at, messageOf(enumerated, at.value))];
  const expected = found.errors.flat().map(expectation).join(", or ");
  return [said(at, `must be ${expected}${butIs(at.value)}`)];
}

function isOfAnotherType(issue: Found): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

function expectation(issue: Found): string {
  if (issue.code === "invalid_value") return choices(issue.values);
  return issue.code === "invalid_type" ? typeName(issue.expected) : issue.message;
}

function messageOf(found: Found, value: unknown): string {
  switch (found.code) {
    case "invalid_type":
      return value === undefined
        ? `is required: ${typeName(found.expected)}`
        : `must be ${typeName(found.expected)}${found.expected === "int" ? "" : butIs(value)}`;
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

function oneOf(allowed: readonly unknown[], value: unknown): string {
  const meant =
    typeof value === "string"
      ? nearestKey(
          value,
          allowed.filter((name) => typeof name === "string"),
        )
      : undefined;
  return `must be ${choices(allowed)}${meant === undefined ? "" : `; did you mean "${meant}"?`}`;
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

function butIs(value: unknown): string {
  if (value === null) return ", not null";
  if (Array.isArray(value)) return ", not a list";
  return `, not ${typeName(typeof value)}`;
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
    else if (/^[A-Za-z_]\w{0,63}$/.test(String(step)))
      text += text === "" ? String(step) : `.${String(step)}`;
    else text += `[${JSON.stringify(String(step).slice(0, 64))}]`;
  }
  return text;
}
