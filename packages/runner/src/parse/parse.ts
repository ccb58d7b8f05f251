import { type Issue, isJsonObject, type RunRequest, type Warning } from "@ambit/core/contract";
import type { z } from "zod";
import { toCurrentSpelling } from "./compat/current-spelling.js";
import { contractSettings, ignoredPath } from "./compat/ignored-keys.js";
import { knownLevel } from "./compat/reader.js";
import { pathBeyondDepth, tooDeep } from "./depth.js";
import { withInlineContent } from "./inline-content.js";
import { maxIssues, readableIssues } from "./issue-text.js";
import { misshapenSchemas } from "./schema-shape.js";
import { unusableContent } from "./turn-content.js";
import { repeatedNames } from "./unique.js";
import { validateRequest } from "./validate.js";

/** The operator's settings for reading requests. */
export const contractSettingsSchema = contractSettings(knownLevel);
export type ContractSettings = Readonly<z.output<typeof contractSettingsSchema>>;

export type ParsedRunRequest =
  /** `warnings` is absent when there are none. */
  | { readonly ok: true; readonly request: RunRequest; readonly warnings?: readonly Warning[] }
  | { readonly ok: false; readonly issues: Issue[] };

/**
 * A parsed JSON body as a request, or everything that is wrong with its shape. An empty body (`undefined`, `null`)
 * is an empty request. Its meaning isn't checked here: a request without a message is valid.
 */
export function parseRunRequest(
  body: unknown,
  { ignoredKeys }: Pick<ContractSettings, "ignoredKeys"> = contractSettingsSchema.parse({}),
): ParsedRunRequest {
  const deep = pathBeyondDepth(body);
  // First, since the following steps recurse and would overflow the stack.
  if (deep !== undefined) return { ok: false, issues: [tooDeep(deep)] };
  const ignorable = new Set(ignoredKeys.map(ignoredPath));
  const { body: current, issues, warnings } = toCurrentSpelling(body ?? {}, ignorable);
  const candidate = withoutBlankSession(current);
  const parsed = validateRequest(candidate);
  const found = [...issues, ...repeatedNames(candidate)];
  const messages = parsed.success ? withInlineContent(parsed.data.messages) : [];
  const shape = parsed.success
    ? [...unusableContent(messages), ...misshapenSchemas(parsed.data.customTools)]
    : readableIssues(parsed.issues, { value: candidate, level: knownLevel, path: [] });
  if (parsed.success && found.length + shape.length === 0) {
    const request = { ...parsed.data, messages };
    return warnings.length === 0 ? { ok: true, request } : { ok: true, request, warnings };
  }
  return { ok: false, issues: bounded(firstOfEachPath([...found, ...shape])) };
}

function withoutBlankSession(body: unknown): unknown {
  if (!isJsonObject(body) || typeof body.sessionId !== "string" || body.sessionId.trim() !== "") return body;
  const { sessionId: _blank, ...rest } = body;
  return rest;
}

/** One fault may be found twice, in its older spelling and by its shape; the first message is more specific. */
function firstOfEachPath(issues: readonly Issue[]): Issue[] {
  const first = new Map<string, Issue>();
  for (const issue of issues) if (!first.has(issue.path)) first.set(issue.path, issue);
  return [...first.values()];
}

function bounded(issues: Issue[]): Issue[] {
  if (issues.length <= maxIssues) return issues;
  return [...issues.slice(0, maxIssues), { path: "", message: "there are more: fix these first" }];
}
