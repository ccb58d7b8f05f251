import type { Issue, JsonObject, Permission, RunRequest, ToolSpec } from "../../contract/index.js";
import type { ToolOutcome } from "./executor.js";

/**
 * Decides on calls of the request's own tools by their arguments: for a tool behind which there are others, such as a gateway
 * to many services. It can only restrict: of its decision, the tool's permission, the rules and the operator's ceiling the
 * strictest applies. It acts only within the runner, so it claims nothing and isn't planned.
 */
export interface ToolPolicy {
  readonly name: string;
  /** Problems of a request, which refuse it. Pure and synchronous. */
  issues(request: RunRequest): readonly Issue[];
  /** The policy of one run: called once for each. Undefined where it governs no tool of the request. Pure and synchronous. */
  forRun(request: RunRequest): RunToolPolicy | undefined;
}

/** A tool policy for one run. Both methods are pure and synchronous. */
export interface RunToolPolicy {
  /** Asked several times about one call, also before its arguments are checked. Undefined for a tool that it doesn't govern. */
  decide(tool: ToolSpec, input: unknown): ToolDecision | undefined;
  /** What the model may read of a call's outcome; the outcome itself for a tool that the policy doesn't govern. */
  readable(tool: ToolSpec, outcome: ToolOutcome): ToolOutcome;
}

export type ToolDecision =
  /** Nothing can be decided on arguments of this shape. The call fails with the problem, and its user isn't asked. */
  | { readonly kind: "malformed"; readonly problem: string }
  /** The reason is what the model reads. */
  | { readonly kind: "denied"; readonly reason: string }
  | {
      readonly kind: "permitted";
      readonly permission: Permission;
      /** What the executor gets besides the model's arguments. */
      readonly context: JsonObject;
      /** What the user reads of the call besides its arguments, where permission asks. */
      readonly details: JsonObject;
    };
