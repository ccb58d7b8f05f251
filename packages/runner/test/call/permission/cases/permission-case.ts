import type { Permission, PermissionMode } from "@ambit/core/contract";
import type { PermissionCeiling } from "../../../../src/index.js";

/** What decides about one call, and what must come out: the permission in force, and what happens to the call. */
export interface PermissionCase {
  readonly name: string;
  readonly mode: PermissionMode;
  /** The tool's own permission. */
  readonly tool?: Permission;
  /** Its MCP server's. Given, the tool is that server's. */
  readonly server?: Permission;
  readonly rules?: readonly (readonly [pattern: string, permission: Permission])[];
  readonly readOnly?: boolean;
  readonly ceiling?: PermissionCeiling;
  /** The user's stored answer for just this call. */
  readonly stored?: "allow" | "deny";
  /** Fulfilled by the user's browser. */
  readonly client?: true;
  /** Default `{ command: "git push origin" }`. */
  readonly arguments?: unknown;
  readonly expected: { readonly effective: Permission; readonly verdict: "allow" | "deny" | "park" };
}

export const allow = { effective: "allow", verdict: "allow" } as const;
export const deny = { effective: "deny", verdict: "deny" } as const;
export const parks = { effective: "ask", verdict: "park" } as const;
