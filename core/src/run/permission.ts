import type { Permission, PermissionMode, Permissions } from "../contract/index.js";

/** A call as the permission ladder sees it. */
export interface PermissionSubject {
  /** The tool's name: ours, or the agent's own (`Bash`). */
  readonly name: string;
  /** The tool's own permission. */
  readonly tool?: Permission | undefined;
  /** Its MCP server's. */
  readonly server?: Permission | undefined;
  readonly readOnly?: boolean | undefined;
  readonly arguments: unknown;
}

/** What no request can allow: `true` denies every call, a list the calls that match one of its patterns. */
export type PermissionCeiling = true | readonly string[];

/**
 * The ladder: the operator's ceiling stands above all; then the tool's own permission, its MCP server's, the
 * strictest matching rule, the default. Pure.
 */
export function permissionOf(
  subject: PermissionSubject,
  permissions: Permissions,
  ceiling: PermissionCeiling = [],
): Permission {
  if (ceiling === true || ceiling.some((pattern) => matchesPattern(pattern, subject))) return "deny";
  return (
    subject.tool ??
    subject.server ??
    strictest((permissions.rules ?? []).filter(({ pattern }) => matchesPattern(pattern, subject))) ??
    byDefault(permissions.default, subject.readOnly)
  );
}

const strictness = ["deny", "ask", "allow"] as const satisfies readonly Permission[];

function strictest(rules: readonly { readonly permission: Permission }[]): Permission | undefined {
  return strictness.find((permission) => rules.some((rule) => rule.permission === permission));
}

function byDefault(mode: PermissionMode, readOnly: boolean | undefined): Permission {
  if (mode !== "allow_reads") return mode;
  return readOnly === true ? "allow" : "ask";
}

/** Whether a rule is of a form that can match a call. */
export function isPattern(pattern: string): boolean {
  return withPrefix.test(pattern) || !/[()]/.test(pattern);
}

/** The tool that a pattern is about. */
export function patternName(pattern: string): string {
  return withPrefix.exec(pattern)?.[1] ?? pattern;
}

const withPrefix = /^([^()]+)\((.*):\*\)$/s;

/** `Name`, or `Name(prefix:*)`: the call's first string argument begins with `prefix`. */
export function matchesPattern(
  pattern: string,
  subject: Pick<PermissionSubject, "name" | "arguments">,
): boolean {
  const parts = withPrefix.exec(pattern);
  if (parts === null) return pattern === subject.name;
  const [, name, prefix = ""] = parts;
  return name === subject.name && (firstText(subject.arguments)?.startsWith(prefix) ?? false);
}

function firstText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  return Object.values(value).find((inner) => typeof inner === "string");
}
