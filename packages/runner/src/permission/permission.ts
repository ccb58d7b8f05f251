import type { Permission, PermissionMode, Permissions } from "@ambit/core/contract";
import { matchesPattern, type PatternSubject } from "./pattern.js";

/** A call as the permission ladder sees it. */
export interface PermissionSubject extends PatternSubject {
  /** The tool's own permission. */
  readonly tool?: Permission | undefined;
  /** Its MCP server's. */
  readonly server?: Permission | undefined;
  readonly readOnly?: boolean | undefined;
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
  if (ceiling === true || ceiling.some((pattern) => matchesPattern(pattern, "deny", subject))) return "deny";
  return (
    subject.tool ??
    subject.server ??
    byRule(permissions.rules ?? [], subject) ??
    byDefault(permissions.default, subject.readOnly)
  );
}

const strictness = ["deny", "ask", "allow"] as const satisfies readonly Permission[];

/** What the strictest rule that matches says. */
function byRule(
  rules: NonNullable<Permissions["rules"]>,
  subject: PermissionSubject,
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
