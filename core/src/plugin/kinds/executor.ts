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
  /** The agent's id of the call, or the runner's if the agent gives none. Unique within the run. */
  readonly id: string;
  readonly tool: ToolSpec;
  /** Already checked against the tool's `inputSchema`. */
  readonly arguments: JsonObject;
  /** Data of the request that is passed on to the platform. Never comes from the model. */
  readonly context?: JsonObject;
}

/** A run, as an executor sees it. */
export interface RunScope {
  /** The id that the caller knows. Runs of two projects may have the same id. */
  readonly runId: string;
  readonly request: RunRequest;
  /** What the run may touch: an executor on the runner must enforce it itself. */
  readonly boundary: Boundary;
  readonly sandbox: Sandbox;
  /** Closes resources that outlive a call. Runs when the run ends, before the sandbox is closed or kept. */
  readonly defer: Scope["defer"];
  readonly log: Log;
}

/** A tool call's scope. Pass its trace context on with the requests that the call makes. */
export interface ToolScope extends RunScope, TraceContext {
  /** Aborts at the tool's time limit, on cancellation, and when the run ends. */
  readonly signal: AbortSignal;
  /** The tool's time limit in milliseconds, for messages. */
  readonly timeoutMs: number;
  /** The same for every attempt of this call, and for no other call, so that a receiver can act once. 43 characters. */
  readonly idempotencyKey: string;
  /** Increases with each owner of the run. Absent where no other process can take it over. */
  readonly fence?: number;
  /**
   * Whether this process certainly still owns the run. An executor checks it last before a request leaves, since the process
   * may have been stopped since the call began.
   */
  readonly mayAct: () => boolean;
}

export type ToolOutcome =
  | { readonly status: "completed"; readonly output: string; readonly data?: unknown }
  /** The tool's own failure: text for the model, which may try something else. */
  | { readonly status: "failed"; readonly output: string }
  /** The user fulfils the call later: the run keeps it open, or pauses. */
  | { readonly status: "parked"; readonly interaction: "client_tool" | "user_input" };

export interface ToolExecutor extends Actor<ToolUse> {
  /** The kind of tools that it executes: `callback`, `code`, `client`, or the plugin's own. */
  readonly kind: string;
  /** The problems of a tool of this kind, by path within the tool (`callRef`). Empty if it can be executed. Pure. */
  issues(use: ToolUse): readonly Issue[];
  /** Called once when the agent has started, to prepare what its first calls need. Returns immediately. */
  prepare?(tools: readonly ToolSpec[], scope: RunScope): void;
  /** Executes a call. A tool's own failure is an outcome, never an exception. */
  execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome>;
}

type Required = "kind" | "site" | "execute";

/** An executor as its author writes it. `name` defaults to the kind; `defineExecutor` says the other defaults. */
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
