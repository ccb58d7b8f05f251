import { callPure, pluginReturns } from "@ambit/core";
import {
  type Issue,
  isJsonObject,
  type KnownShape,
  knownShapeOf,
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
import { pathBeyondDepth, tooDeep } from "./depth.js";
import { contractSettings, ignoredPath } from "./ignored-keys.js";
import { withInlineContent } from "./inline-content.js";
import { withinPathRoom } from "./path-room.js";
import { pruned } from "./pruned.js";
import { misshapenSchemas } from "./schema-shape.js";
import { withinSecretRoom } from "./secret-room.js";
import { unusableContent } from "./turn-content.js";
import { repeatedNames } from "./unique.js";
import { validateRequest } from "./validate.js";

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
  const rest = pruned(translated.body, wire.level, new Set(ignoredKeys.map(ignoredPath)));
  const paths = withinPathRoom(rest.body);
  const secrets = withinSecretRoom(paths.body);
  const candidate = withoutBlankSession(secrets.body);
  const parsed = validateRequest(candidate, wire.schema, wire.level);
  const found = [
    ...translated.issues,
    ...rest.issues,
    ...paths.issues,
    ...secrets.issues,
    ...repeatedNames(candidate),
  ];
  const messages = parsed.success ? withInlineContent(parsed.data.messages) : [];
  const shape = parsed.success
    ? [...unusableContent(messages), ...misshapenSchemas(parsed.data.customTools)]
    : readableIssues(parsed.issues, { value: candidate, level: levelWith(wire.level, dialects), path: [] });
  if (parsed.success && found.length + shape.length === 0) {
    const request = { ...parsed.data, messages };
    return rest.warnings.length === 0
      ? { ok: true, request }
      : { ok: true, request, warnings: rest.warnings };
  }
  return { ok: false, issues: bounded(firstOfEachPath([...found, ...shape])) };
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
  const made = wires.get(dialects);
  if (made !== undefined) return made;
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
