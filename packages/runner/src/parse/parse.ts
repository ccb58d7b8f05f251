import { callPure, pluginReturns } from "@ambit/core";
import {
  type ContentBlock,
  type Issue,
  isJsonObject,
  type KnownShape,
  knownShapeAt,
  knownShapeOf,
  type MarkedValue,
  type Message,
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
import { contractSettings, ignoredPath, pruned } from "./ignored-keys.js";
import { withInlineContent } from "./inline-content.js";
import { historyOf } from "./prompt.js";
import { misshapenSchemas } from "./schema-shape.js";
import { repeatedNames } from "./unique.js";
import { type Validation, validate } from "./windows.js";

/** The operator's settings for reading requests. They are read before the plugins, so without the fields of dialects. */
export const contractSettingsSchema = contractSettings(knownShapeOf(runRequestSchema));
export type ContractSettings = Readonly<z.output<typeof contractSettingsSchema>>;

export type ParsedRunRequest =
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
      const given = before.body;
      if (!isJsonObject(given)) return before;
      const { request, issues } = callPure(dialect, "translate", pluginReturns.translation, () =>
        dialect.translate(given),
      );
      return { body: request, issues: [...before.issues, ...issues] };
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
  const known = [...level.keys].map(
    ([key, below]) => [key, withKeys(below, place === "" ? key : `${place}.${key}`, further)] as const,
  );
  const added = further(place).map((key) => [key, undefined] as const);
  return mergeKnownShapes({ kind: "object", keys: new Map(known) }, { kind: "object", keys: new Map(added) });
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

/** By field of a request, what its schema marks as secret in it. Of other fields nothing is marked. */
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

/** Blocks that carry a file or an image. */
const media: ReadonlySet<string> = new Set(["image", "audio", "resource", "file", "attachment"]);
/** Blocks that say something or record a call. */
const texts: ReadonlySet<string> = new Set(["text", "tool_call", "tool_result"]);

/** Base64 of RFC 4648, with or without padding, without line breaks: what ACP passes to an agent. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * What no agent could take of this turn's messages, whose inline content has one form already. Earlier messages may hold
 * anything: a conversation with an attachment in its past continues. Pure.
 */
function unusableContent(messages: readonly Message[]): Issue[] {
  const issues: Issue[] = [];
  for (let index = historyOf(messages).length; index < messages.length; index += 1) {
    const content = messages[index]?.content ?? "";
    if (typeof content === "string") continue;
    for (const [at, block] of content.entries()) {
      issues.push(...issueOf(block, `messages[${index}].content[${at}]`));
      if (issues.length > maxIssues) return issues;
    }
  }
  return issues;
}

function issueOf(block: ContentBlock, path: string): Issue[] {
  const { type, attachmentId, data, uri, text } = block;
  if (type === "attachment" || attachmentId !== undefined) {
    const message = "is in the platform's own store: send its content as an image or resource block";
    return [{ path: `${path}.attachmentId`, message }];
  }
  if (texts.has(type)) return [];
  if (!media.has(type)) {
    const message = `is '${type}', which agents don't take: use text, image, audio or resource`;
    return [{ path: `${path}.type`, message }];
  }
  if (
    data === undefined &&
    uri === undefined &&
    (type === "image" || type === "audio" || text === undefined)
  ) {
    const message = `is missing: the content of this ${type}, as base64 or a data: URI`;
    return [{ path: `${path}.data`, message }];
  }
  if (data !== undefined && !isBase64(data))
    return [{ path: `${path}.data`, message: "is neither base64 nor a data: URI" }];
  if (uri?.slice(0, "data:".length).toLowerCase() === "data:")
    return [{ path: `${path}.uri`, message: "is no readable data: URI (RFC 2397)" }];
  return [];
}

function isBase64(data: string): boolean {
  return data !== "" && data.length % 4 !== 1 && base64.test(data);
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
