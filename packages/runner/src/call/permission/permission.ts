import type { McpServer, Permission, PermissionMode, RunRequest } from "@ambit/core/contract";
import type { PermissionCeiling } from "../../operator.js";
import type { CallSubject } from "../call-subject.js";
import { classNamesOf, type KnownTools } from "./known-tools.js";
import { matchesPattern, type PatternSubject } from "./pattern.js";

/** The input of a decision on a call. */
export interface PermissionRules {
  readonly permissions: RunRequest["permissions"];
  readonly ceiling: PermissionCeiling;
  readonly known: KnownTools;
}

/**
 * The operator's ceiling first; then the tool's own permission, its MCP server's, the strictest matching rule, the
 * default. A call that the user fulfils isn't asked about. Pure.
 */
export function permissionOf(
  call: CallSubject,
  { permissions, ceiling, known }: PermissionRules,
): Permission {
  const { tool, server, byCaller } = call;
  const subject = patternSubjectOf(call, known);
  if (ceiling === true || ceiling.some((pattern) => matchesPattern(pattern, "deny", subject))) return "deny";
  const permission =
    tool?.permission ??
    byServer(server?.policy, call.name) ??
    byRule(permissions.rules ?? [], subject) ??
    byDefault(permissions.default, isOfAgent(call) ? call.saysReadOnly : tool?.readOnly);
  return permission === "ask" && byCaller === true ? "allow" : permission;
}

/** A table beats the permission of the whole server; a tool that it doesn't name never falls through to that. */
function byServer(policy: McpServer["policy"], name: string): Permission | undefined {
  const { toolPermissions, newToolPermission, permission } = policy ?? {};
  if (toolPermissions !== undefined && Object.hasOwn(toolPermissions, name)) return toolPermissions[name];
  return newToolPermission ?? (toolPermissions === undefined ? permission : "ask");
}

function patternSubjectOf(call: CallSubject, known: KnownTools): PatternSubject {
  const { name, input, tool, toolClass } = call;
  const isAgents = isOfAgent(call);
  return {
    name,
    classNames: isAgents ? classNamesOf(name, toolClass, known) : undefined,
    // A published tool is decided on again where it is executed, by its actual arguments.
    arguments: isAgents ? input : (input ?? {}),
    inputSchema: tool?.inputSchema,
  };
}

/** The class names and read-only hints of an agent count for its own tools alone. */
function isOfAgent({ tool, server }: CallSubject): boolean {
  return tool === undefined && server === undefined;
}

const strictness = ["deny", "ask", "allow"] as const satisfies readonly Permission[];

export function strictest(one: Permission, other: Permission): Permission {
  return strictness.find((permission) => permission === one || permission === other) ?? one;
}

/** The permission of the strictest matching rule. */
function byRule(
  rules: NonNullable<RunRequest["permissions"]["rules"]>,
  subject: PatternSubject,
): Permission | undefined {
  return strictness.find((effect) =>
    rules.some(
      ({ pattern, permission }) => permission === effect && matchesPattern(pattern, effect, subject),
    ),
  );
}

function byDefault(mode: PermissionMode, readOnly: boolean | undefined): Permission {
  if (mode !== "allow_reads") return mode;
  return readOnly === true ? "allow" : "ask";
}
