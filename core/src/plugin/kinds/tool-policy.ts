import type { Issue, JsonObject, Permission, RunRequest, ToolSpec } from "../../contract/index.js";
import type { ToolOutcome } from "./executor.js";

/**
 * Decides on calls of the request's own tools by their arguments, for a tool that gives access to others, such as a gateway
 * to many services. A policy can only restrict: the strictest of its decision, the tool's permission, the rules and the
 * operator's ceiling applies. It acts only within the runner, so it claims nothing and isn't planned.
 */
export interface ToolPolicy {
  readonly name: string;
  /** The problems for which a request is refused. Pure and synchronous. */
  issues(request: RunRequest): readonly Issue[];
  /** Returns the policy of one run; called once for each. Undefined: it governs no tool of the request. Pure and synchronous. */
  forRun(request: RunRequest): RunToolPolicy | undefined;
}

/** A tool policy for one run. Both methods are pure and synchronous. */
export interface RunToolPolicy {
  /** May be called several times for one call, also before its arguments are checked. Undefined: it doesn't govern the tool. */
  decide(tool: ToolSpec, input: unknown): ToolDecision | undefined;
  /** Returns what the model may read of a call's outcome; the outcome itself for a tool that the policy doesn't govern. */
  readable(tool: ToolSpec, outcome: ToolOutcome): ToolOutcome;
}

export type ToolDecision =
  /** The policy can't decide on arguments of this shape. The call fails with the problem, and the user isn't asked. */
  | { readonly kind: "malformed"; readonly problem: string }
  /** The model reads the reason. */
  | { readonly kind: "denied"; readonly reason: string }
  | {
      readonly kind: "permitted";
      readonly permission: Permission;
      /** Data that the executor gets besides the model's arguments. */
      readonly context: JsonObject;
      /** Details that the user reads besides the call's arguments, if the permission is to ask. */
      readonly details: JsonObject;
    };
