import type { z } from "zod";
import { issueSentence, readUnion } from "./issue-sentence.js";
import { type KnownShape, validatedShapeAt } from "./known-shape.js";
import type { Issue } from "./result/failure.js";
import { nearestKey } from "./spelling.js";

type Path = readonly PropertyKey[];
type Found = z.core.$ZodIssue;

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
      return found.issues.map((inner) => issueAt(at, `the name ${issueSentence(inner, undefined)}`));
    default:
      return [issueAt(at, sentenceOf(found, at.value))];
  }
}

/** A schema's own message, where it has one. */
function sentenceOf(found: Found, value: unknown): string {
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
  const known = namesAt(level);
  const meant = nearestKey(key, known);
  const settings = known.filter((name) => !name.startsWith("$")).join(", ");
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
