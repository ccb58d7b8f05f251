import { z } from "zod";
import { issueSentence, nearestKey, readUnion } from "../contract/index.js";

/** A line for each problem that a schema found in given settings: path, reason, and the name that was probably meant. */
export function settingsProblems(error: z.ZodError, schema: z.ZodType, given: unknown): readonly string[] {
  return error.issues.flatMap((issue) => problemsOf(issue, [], schema, given));
}

function problemsOf(
  issue: z.core.$ZodIssue,
  above: readonly PropertyKey[],
  schema: z.ZodType,
  given: unknown,
): readonly string[] {
  const path = [...above, ...issue.path];
  const value = valueAt(given, path);
  if (issue.code === "unrecognized_keys") {
    const known = keysAt(schema, path);
    return issue.keys.map((key) => {
      const meant = nearestKey(key, known);
      const fix =
        meant === undefined ? `known are ${known.join(", ") || "none"}` : `did you mean \`${meant}\`?`;
      return `${pathOf([...path, key])}is not a known setting: ${fix}`;
    });
  }
  // A union's own message says more about it than its variants do.
  if (issue.code !== "invalid_union" || issue.message !== "Invalid input")
    return [`${pathOf(path)}${sentenceOf(issue, value)}`];
  const read = readUnion(issue, value);
  if ("sentence" in read) return [`${pathOf(path)}${read.sentence}`];
  return read.issues.flatMap((inner) => problemsOf(inner, path, schema, given));
}

/** A schema's own message, where it has one. */
function sentenceOf(issue: z.core.$ZodIssue, value: unknown): string {
  return /^(Invalid|Too) /.test(issue.message) ? issueSentence(issue, value) : issue.message;
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  const below = (value: unknown, step: PropertyKey) =>
    typeof value === "object" && value !== null
      ? Object.getOwnPropertyDescriptor(value, step)?.value
      : undefined;
  return path.reduce<unknown>(below, given);
}

function pathOf(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (left, step) =>
      typeof step === "number" ? `${left}[${step}]` : `${left}${left === "" ? "" : "."}${String(step)}`,
    "",
  );
  return text === "" ? "" : `${text} `;
}

/** The keys that an object of the schema may have at a path. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return keysAt(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => keysAt(option, path));
  const [step, ...rest] = path;
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  if (step === undefined) return Object.keys(schema.shape).filter((key) => !key.startsWith("$"));
  const below = schema.shape[String(step)];
  return below === undefined ? [] : keysAt(below, rest);
}
