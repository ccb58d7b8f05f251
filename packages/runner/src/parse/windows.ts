import { isJsonObject, type KnownShape, maxIssues } from "@ambit/core/contract";
import type { z } from "zod";

/** Entries of each list that are validated at once. */
const windowSize = maxIssues;

type Found = z.core.$ZodIssue;

export type Validation<Data> =
  | { readonly success: true; readonly data: Data }
  | { readonly success: false; readonly issues: readonly Found[] };

/**
 * The same as `safeParse`, but of a value with a long list or map that isn't valid nothing further is looked at once there are enough
 * issues: zod collects all, and a body has room for a hundred thousand. No long list of the schema is within another one.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  level: KnownShape | undefined,
): Validation<z.output<Schema>> {
  const issues = issuesInWindows(schema, value, level);
  if (issues.length > 0) return { success: false, issues };
  const parsed = schema.safeParse(value);
  return parsed.success ? parsed : { success: false, issues: parsed.error.issues };
}

/** None where nothing is long. */
function issuesInWindows(schema: z.ZodType, value: unknown, level: KnownShape | undefined): readonly Found[] {
  const longest = maxEntriesIn(value, level);
  if (longest <= windowSize) return [];
  // What is no part of a long list has the same issues in each window.
  const issues = new Map<string, Found>();
  let count = 0;
  for (let from = 0; from < longest && count <= maxIssues; from += windowSize) {
    const { error } = schema.safeParse(windowOf(value, level, from));
    for (const issue of error?.issues ?? []) {
      const moved = inWhole(issue, value, from);
      const variants = innerPaths(moved);
      const key = JSON.stringify([moved.path.map(String), moved.code, variants]);
      if (issues.has(key)) continue;
      issues.set(key, moved);
      // One variant's are reported.
      count += Math.max(1, ...variants.map(({ length }) => length));
    }
  }
  return [...issues.values()];
}

/** The places of what each variant of a union says. */
function innerPaths(issue: Found): readonly (readonly string[])[] {
  if (issue.code !== "invalid_union") return [];
  return issue.errors.map((variant) => variant.map(({ path }) => path.join(".")));
}

/** What was found in a window, with its places in the whole value. */
function inWhole<Issue extends Found>(issue: Issue, value: unknown, from: number): Issue {
  let at = value;
  const path = issue.path.map((step) => {
    const place = typeof step === "number" && Array.isArray(at) ? step + startIn(at.length, from) : step;
    at = typeof at === "object" && at !== null ? Reflect.get(at, place) : undefined;
    return place;
  });
  if (issue.code !== "invalid_union") return { ...issue, path };
  return {
    ...issue,
    path,
    errors: issue.errors.map((variant) => variant.map((one) => inWhole(one, at, from))),
  };
}

const withLists = new WeakMap<KnownShape, boolean>();

/** Whether a value of this level may have lists or maps. */
function hasLists(level: KnownShape | undefined): level is KnownShape {
  if (level === undefined) return false;
  const answer = withLists.get(level);
  if (answer !== undefined) return answer;
  const has = level.kind !== "object" || fieldsWithLists(level).length > 0;
  withLists.set(level, has);
  return has;
}

const fields = new WeakMap<KnownShape, readonly (readonly [key: string, inner: KnownShape])[]>();

/** Of an object, the fields that may have lists or maps: most have none, and a request many objects. */
function fieldsWithLists(
  level: Extract<KnownShape, { kind: "object" }>,
): readonly (readonly [key: string, inner: KnownShape])[] {
  const earlier = fields.get(level);
  if (earlier !== undefined) return earlier;
  const withListsBelow: [string, KnownShape][] = [];
  for (const [key, inner] of level.keys) if (hasLists(inner)) withListsBelow.push([key, inner]);
  fields.set(level, withListsBelow);
  return withListsBelow;
}

/** The number of entries of its longest list or map. */
function maxEntriesIn(value: unknown, level: KnownShape | undefined): number {
  if (!hasLists(level) || typeof value !== "object" || value === null) return 0;
  let longest = 0;
  const look = (inner: unknown, at: KnownShape | undefined) => {
    longest = Math.max(longest, maxEntriesIn(inner, at));
  };
  if (level.kind === "list") {
    if (!Array.isArray(value)) return 0;
    longest = value.length;
    if (hasLists(level.element)) for (const entry of value) look(entry, level.element);
  } else if (isJsonObject(value)) {
    if (level.kind === "object") for (const [key, inner] of fieldsWithLists(level)) look(value[key], inner);
    else {
      const entries = Object.values(value);
      longest = entries.length;
      if (hasLists(level.value)) for (const entry of entries) look(entry, level.value);
    }
  }
  return longest;
}

/** The value with at most `windowSize` entries of each list and map: those from this one on, or the first of a shorter one. */
function windowOf(value: unknown, level: KnownShape | undefined, from: number): unknown {
  if (!hasLists(level) || typeof value !== "object" || value === null) return value;
  if (level.kind === "list") {
    if (!Array.isArray(value)) return value;
    return inWindow(value, from).map((entry) => windowOf(entry, level.element, from));
  }
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value);
  const [kept, below] =
    level.kind === "map"
      ? [inWindow(entries, from), () => level.value]
      : [entries, (key: string) => level.keys.get(key)];
  return Object.fromEntries(kept.map(([key, inner]) => [key, windowOf(inner, below(key), from)]));
}

function inWindow<Entry>(entries: readonly Entry[], from: number): readonly Entry[] {
  const start = startIn(entries.length, from);
  return entries.slice(start, start + windowSize);
}

/** A list that ends before the window shows its beginning: an empty one would be another value. */
const startIn = (length: number, from: number) => (from < length ? from : 0);
