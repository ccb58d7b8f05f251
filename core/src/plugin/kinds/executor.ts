import type { Boundary } from "../../boundary.js";
import {
  domains,
  type Issue,
  type JsonObject,
  type RunRequest,
  type ToolSpec,
} from "../../contract/index.js";
import type { Actor } from "../actor.js";
import type { Log, Scope, TraceContext } from "../scope.js";
import type { Sandbox } from "./sandbox.js";

export interface ToolUse {
  readonly tool: ToolSpec;
  readonly request: RunRequest;
}

export interface ToolCall {
  /** The agent's id of the call where it has one, else ours. Unique within the run. */
  readonly id: string;
  readonly tool: ToolSpec;
  /** Already checked against the tool's `inputSchema`. */
  readonly arguments: JsonObject;
  /** What the runner adds for the platform: comes from the request, never from the model. */
  readonly context?: JsonObject;
}

/** A run, as an executor sees it. */
export interface RunScope {
  /** As its caller knows it. Runs of two projects may have the same one. */
  readonly runId: string;
  readonly request: RunRequest;
  /** What the run may touch: an executor on the runner must enforce it itself. */
  readonly boundary: Boundary;
  readonly sandbox: Sandbox;
  /** For resources that outlive a call. It closes when the run ends, before the sandbox is closed or kept. */
  readonly defer: Scope["defer"];
  readonly log: Log;
}

/** Its trace context is to be passed on with requests that the call makes. */
export interface ToolScope extends RunScope, TraceContext {
  /** Aborts on the tool's time limit, on cancel, and when the run ends. */
  readonly signal: AbortSignal;
  /** Milliseconds until `signal` aborts for the time limit, for messages. */
  readonly timeoutMs: number;
  /** The same for every attempt of this call, and for no other call: for a receiver that must act once. 43 characters. */
  readonly idempotencyKey: string;
  /** Increases with each owner of the run. Absent where no other process can take it over. */
  readonly fence?: number;
  /**
   * Whether the run is certainly still this process's, which an executor checks last before a request leaves: the
   * process may have been stopped since the call began.
   */
  readonly mayAct: () => boolean;
}

export type ToolOutcome =
  | { readonly status: "completed"; readonly output: string; readonly data?: unknown }
  /** The tool's own failure: text for the model, which may try something else. */
  | { readonly status: "failed"; readonly output: string }
  /** Fulfilled later by the user: the run keeps the call open, or pauses. */
  | { readonly status: "parked"; readonly interaction: "client_tool" | "user_input" };

export interface ToolExecutor extends Actor<ToolUse> {
  /** The tools it executes: `callback`, `code`, `client`, or a kind of the plugin's own. */
  readonly kind: string;
  /** Problems of a tool of this kind, by path within the tool (`callRef`). Empty if it can be executed. Pure. */
  issues(use: ToolUse): readonly Issue[];
  /** Called once when the agent has started, to prepare what its first calls would wait for. Returns immediately. */
  prepare?(tools: readonly ToolSpec[], scope: RunScope): void;
  /** Never throws for a tool's own failure. */
  execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome>;
}

type Required = "kind" | "site" | "execute";

/** An executor as its author writes it. `name` defaults to the kind, the rest as `defineExecutor` says. */
export type ExecutorDefinition = Pick<ToolExecutor, Required> & Partial<Omit<ToolExecutor, Required>>;

/**
 * Makes a `ToolExecutor` with conservative defaults: it touches every domain and claims nothing, so any boundary refuses
 * it, unless its site is `caller` or `sandbox`. Set `touches` for an executor that acts in fewer domains, and `claims` and
 * `probe` for what it enforces. By default it states no gaps and no issues.
 */
export function defineExecutor(definition: ExecutorDefinition): ToolExecutor {
  return Object.freeze({
    name: definition.kind,
    claims: [],
    touches: () => domains,
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    ...definition,
  });
}
