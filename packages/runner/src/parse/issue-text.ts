import { type Issue, issueSentence, nearestKey, readUnion } from "@ambit/core/contract";
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
      return found.issues.map((inner) => said(at, `the name ${issueSentence(inner, undefined)}`));
    default:
      return [said(at, issueSentence(found, at.value))];
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
  const read = readUnion(found, at.value);
  return "issues" in read ? readableIssues(read.issues, at) : [said(at, read.sentence)];
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
