import type { McpServer, Permission, PermissionMode, RunRequest } from "@ambit/core/contract";
import type { PermissionCeiling } from "../../operator.js";
import type { CallSubject } from "../values/call.js";
import { classNamesOf, type KnownTools } from "./known-tools.js";
import { type PatternMatcher, patternMatcher } from "./pattern.js";

/** The input of a decision on a call. */
export interface PermissionRules {
  readonly permissions: RunRequest["permissions"];
  readonly ceiling: PermissionCeiling;
  readonly known: KnownTools;
}

/**
 * The operator's ceiling first; then the tool's own permission, its MCP server's, the strictest matching rule, the
 * default. Pure.
 * @param matches as `matcherOf` made it, where it decides on the call for several servers.
 */
export function permissionOf(
  call: CallSubject,
  { permissions, ceiling, known }: PermissionRules,
  matches = matcherOf(call, known),
): Permission {
  const { name, tool, server } = call;
  // The class names and read-only hints of an agent count for its own tools alone.
  const isAgents = tool === undefined && server === undefined;
  if (ceiling === true || ceiling.some((pattern) => matches(pattern, "deny"))) return "deny";
  return (
    tool?.permission ??
    byServer(server?.policy, name) ??
    byRule(permissions.rules ?? [], matches) ??
    byDefault(permissions.default, isAgents ? call.readOnly : tool?.readOnly)
  );
}

/** Which rules match a call. It is the same for all servers. */
export function matcherOf(call: CallSubject, known: KnownTools): PatternMatcher {
  const { name, input, tool, server, toolClass } = call;
  if (tool === undefined && server === undefined)
    return patternMatcher(call, classNamesOf(name, toolClass, known));
  // A published tool is decided on again where it is executed, by its actual arguments.
  return patternMatcher({ ...call, input: input ?? {} });
}

/** A table beats the permission of the whole server; a tool that it doesn't name never falls through to that. */
function byServer(policy: McpServer["policy"], name: string): Permission | undefined {
  const { toolPermissions, newToolPermission, permission } = policy ?? {};
  if (toolPermissions !== undefined && Object.hasOwn(toolPermissions, name)) return toolPermissions[name];
  return newToolPermission ?? (toolPermissions === undefined ? permission : "ask");
}

const strictness = ["deny", "ask", "allow"] as const satisfies readonly Permission[];

export function strictest(one: Permission, other: Permission): Permission {
  return strictness.find((permission) => permission === one || permission === other) ?? one;
}

/** The permission of the strictest matching rule. */
function byRule(
  rules: NonNullable<RunRequest["permissions"]["rules"]>,
  matches: PatternMatcher,
): Permission | undefined {
  return strictness.find((effect) =>
    rules.some(({ pattern, permission }) => permission === effect && matches(pattern, effect)),
  );
}

function byDefault(mode: PermissionMode, readOnly: boolean | undefined): Permission {
  if (mode !== "allow_reads") return mode;
  return readOnly === true ? "allow" : "ask";
}
