import { callPure, pluginReturns } from "@ambit/core";
import {
  type Issue,
  isJsonObject,
  type KnownShape,
  knownShapeAt,
  knownShapeOf,
  type MarkedValue,
  markedValues,
  maxIssues,
  mergeKnownShapes,
  type RunRequest,
  type RunRequestSchema,
  readableIssues,
  requestSchemaWith,
  runRequestSchema,
  type Warning,
} from "@ambit/core/contract";
import type { Dialect } from "@ambit/core/plugin";
import type { z } from "zod";
import { pathBeyondDepth, tooDeep } from "../json-values.js";
import { misshapenSchemas, repeatedNames } from "./checks.js";
import { contractSettings, ignoredPath, pruned } from "./ignored-keys.js";
import { unusableContent, withInlineContent } from "./messages.js";

/** The operator's settings for reading requests. They are read before the plugins, so without the fields of dialects. */
export const contractSettingsSchema = contractSettings(knownShapeOf(runRequestSchema));
export type ContractSettings = Readonly<z.output<typeof contractSettingsSchema>>;

type ParsedRunRequest =
  /** `warnings` is absent when there are none. */
  | { readonly ok: true; readonly request: RunRequest; readonly warnings?: readonly Warning[] }
  | { readonly ok: false; readonly issues: Issue[] };

const noDialects: readonly Dialect[] = [];

/**
 * A parsed JSON body as a request, or everything that is wrong with its shape. An empty body (`undefined`, `null`)
 * is an empty request. Its meaning isn't checked here: a request without a message is valid.
 *
 * @param dialects translate it first, in their order, and add fields to it. Default: none.
 * @throws PluginBrokeContract for a dialect that throws
 */
export function parseRunRequest(
  body: unknown,
  { ignoredKeys }: Pick<ContractSettings, "ignoredKeys"> = contractSettingsSchema.parse({}),
  dialects: readonly Dialect[] = noDialects,
): ParsedRunRequest {
  const deep = pathBeyondDepth(body);
  // First, since the following steps recurse and would overflow the stack.
  if (deep !== undefined) return { ok: false, issues: [tooDeep(deep)] };
  const translated = translatedBy(dialects, body ?? {});
  const wire = wireOf(dialects);
  const remainder = pruned(translated.body, wire.level, new Set(ignoredKeys.map(ignoredPath)));
  const paths = withinPathRoom(remainder.body);
  const secrets = withinSecretRoom(paths.body);
  const candidate = withoutBlankSession(secrets.body);
  const parsed = validateRequest(candidate, wire.schema, wire.level);
  const earlyIssues = [
    ...translated.issues,
    ...remainder.issues,
    ...paths.issues,
    ...secrets.issues,
    ...repeatedNames(candidate),
  ];
  const messages = parsed.success ? withInlineContent(parsed.data.messages) : [];
  const shape = parsed.success
    ? [...unusableContent(messages), ...misshapenSchemas(parsed.data.customTools)]
    : readableIssues(parsed.issues, { value: candidate, level: levelWith(wire.level, dialects), path: [] });
  if (parsed.success && earlyIssues.length + shape.length === 0) {
    const request = { ...parsed.data, messages };
    return remainder.warnings.length === 0
      ? { ok: true, request }
      : { ok: true, request, warnings: remainder.warnings };
  }
  return { ok: false, issues: bounded(firstOfEachPath([...earlyIssues, ...shape])) };
}

interface Translated {
  readonly body: unknown;
  readonly issues: readonly Issue[];
}

function translatedBy(dialects: readonly Dialect[], body: unknown): Translated {
  return dialects.reduce<Translated>(
    (before, dialect) => {
      const request = before.body;
      if (!isJsonObject(request)) return before;
      const translated = callPure(dialect, "translate", pluginReturns.translation, () =>
        dialect.translate(request),
      );
      return { body: translated.request, issues: [...before.issues, ...translated.issues] };
    },
    { body, issues: [] },
  );
}

/** What requests in some dialects are validated with. */
interface Wire {
  readonly schema: RunRequestSchema;
  readonly level: KnownShape | undefined;
}

const wires = new WeakMap<readonly Dialect[], Wire>();

/** Made once for the dialects of a registry. */
function wireOf(dialects: readonly Dialect[]): Wire {
  const earlier = wires.get(dialects);
  if (earlier !== undefined) return earlier;
  const schema = requestSchemaWith(dialects.map(({ fields = {} }) => fields));
  const wire = { schema, level: knownShapeOf(schema) };
  wires.set(dialects, wire);
  return wire;
}

/** Every key that a request may have, in any dialect: what a misspelt one is compared with. */
function levelWith(level: KnownShape | undefined, dialects: readonly Dialect[]): KnownShape | undefined {
  return withKeys(level, "", (place) => dialects.flatMap(({ keys }) => keys[place] ?? []));
}

function withKeys(
  level: KnownShape | undefined,
  place: string,
  further: (place: string) => readonly string[],
): KnownShape | undefined {
  if (level?.kind === "list") return { ...level, element: withKeys(level.element, `${place}[]`, further) };
  if (level?.kind !== "object") return level;
  const below = [...level.keys].map(
    ([key, inner]) => [key, withKeys(inner, place === "" ? key : `${place}.${key}`, further)] as const,
  );
  const added = further(place).map((key) => [key, undefined] as const);
  return mergeKnownShapes({ kind: "object", keys: new Map(below) }, { kind: "object", keys: new Map(added) });
}

function withoutBlankSession(body: unknown): unknown {
  if (!isJsonObject(body) || typeof body.sessionId !== "string" || body.sessionId.trim() !== "") return body;
  const { sessionId: _blank, ...rest } = body;
  return rest;
}

/** One fault may be found twice, by its dialect and by its shape; the first message is more specific. */
function firstOfEachPath(issues: readonly Issue[]): Issue[] {
  const first = new Map<string, Issue>();
  for (const issue of issues) if (!first.has(issue.path)) first.set(issue.path, issue);
  return [...first.values()];
}

function bounded(issues: Issue[]): Issue[] {
  if (issues.length <= maxIssues) return issues;
  return [...issues.slice(0, maxIssues), { path: "", message: "there are more: fix these first" }];
}

/** Characters of the paths of all files that a request brings: how long it takes to compare them depends on that. */
const maxCharacters = 2_097_152;

/** Where a request has files. */
const places = ["harnessFiles", "skills", "workspace"] as const;

/** The request without its files where their paths are too long together: nothing else is checked of them then. Pure. */
function withinPathRoom(request: unknown): { readonly body: unknown; readonly issues: Issue[] } {
  if (!isJsonObject(request)) return { body: request, issues: [] };
  let characters = 0;
  const path = places.find((place) => {
    for (const file of filesIn(request, place)) characters += pathLength(file);
    return characters > maxCharacters;
  });
  if (path === undefined) return { body: request, issues: [] };
  const { harnessFiles: _files, skills: _skills, workspace: _workspace, ...body } = request;
  const message = `makes the paths of all files longer than ${maxCharacters.toLocaleString("en")} characters together: send fewer or shorter ones`;
  return { body, issues: [{ path, message }] };
}

function filesIn(request: Readonly<Record<string, unknown>>, place: (typeof places)[number]): unknown[] {
  if (place === "harnessFiles") return listOf(request.harnessFiles);
  const owners =
    place === "skills"
      ? request.skills
      : isJsonObject(request.workspace)
        ? request.workspace.sources
        : undefined;
  return listOf(owners).flatMap((owner) => (isJsonObject(owner) ? listOf(owner.files) : []));
}

function pathLength(file: unknown): number {
  return isJsonObject(file) && typeof file.path === "string" ? file.path.length : 0;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Headers, variables and credentials that a request brings: to read and search each takes longer than to parse it. */
const maxEntries = 2_000;

/** What the schema of each field of a request marks as secret in it. Nothing is marked in other fields. */
const markedIn = new Map(
  Object.entries(runRequestSchema.shape).map(([name, schema]) => [name, markedValues(schema)]),
);

/** The request without its fields that have secrets, where it has too many: nothing else is checked of them then. Pure. */
function withinSecretRoom(request: unknown): { readonly body: unknown; readonly issues: Issue[] } {
  if (!isJsonObject(request)) return { body: request, issues: [] };
  let entries = 0;
  let exceeded: string | undefined;
  const having = new Set<string>();
  for (const [name, marked] of markedIn) {
    const count = marked(request[name]).reduce((sum, one) => sum + entriesIn(one), 0);
    if (count > 0) having.add(name);
    entries += count;
    if (entries > maxEntries) exceeded ??= name;
  }
  if (exceeded === undefined) return { body: request, issues: [] };
  const body = Object.fromEntries(Object.entries(request).filter(([name]) => !having.has(name)));
  const message = `makes more than ${maxEntries.toLocaleString("en")} headers, variables and credentials together: send fewer`;
  return { body, issues: [{ path: exceeded, message }] };
}

/** All headers of a field are one value. */
function entriesIn({ kind, value }: MarkedValue): number {
  if (kind === "url" || kind === "address") return 0;
  return isJsonObject(value) ? Object.keys(value).length : 1;
}

/**
 * The same as `schema.safeParse`, but long lists are validated entry by entry, and no further once there are
 * enough issues: zod collects all of them, and a body has room for a hundred thousand.
 */
function validateRequest(
  candidate: unknown,
  schema: RunRequestSchema,
  level: KnownShape | undefined,
): Validation<RunRequest> {
  const issues: z.core.$ZodIssue[] = [];
  const frame: unknown = isJsonObject(candidate) ? { ...candidate } : candidate;
  const take = <Entry extends z.ZodType>(key: keyof RunRequest, entry: Entry): z.output<Entry>[] => {
    const list = isJsonObject(frame) ? frame[key] : undefined;
    if (!isJsonObject(frame) || !Array.isArray(list)) return [];
    Object.assign(frame, { [key]: [] });
    return validEntries(list, entry, level, key, issues);
  };
  const { shape } = schema;
  const lists = {
    messages: take("messages", shape.messages.unwrap().element),
    customTools: take("customTools", shape.customTools.unwrap().element),
    mcpServers: take("mcpServers", shape.mcpServers.unwrap().element),
    skills: take("skills", shape.skills.unwrap().element),
    harnessFiles: take("harnessFiles", shape.harnessFiles.unwrap().element),
  };
  const parsed = validate(schema, frame, level);
  if (!parsed.success) return { success: false, issues: [...issues, ...parsed.issues] };
  return issues.length > 0
    ? { success: false, issues }
    : { success: true, data: { ...parsed.data, ...lists } };
}

function validEntries<Entry extends z.ZodType>(
  list: readonly unknown[],
  schema: Entry,
  requestLevel: KnownShape | undefined,
  key: string,
  issues: z.core.$ZodIssue[],
): z.output<Entry>[] {
  const valid: z.output<Entry>[] = [];
  const level = knownShapeAt(requestLevel, [key, 0]);
  for (const [index, entry] of list.entries()) {
    const parsed = validate(schema, entry, level);
    if (parsed.success) valid.push(parsed.data);
    else {
      for (const issue of parsed.issues) issues.push({ ...issue, path: [key, index, ...issue.path] });
      if (issues.length > maxIssues) break;
    }
  }
  return valid;
}

/** Entries of each list that are validated at once. */
const windowSize = maxIssues;

type Found = z.core.$ZodIssue;

type Validation<Data> =
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
