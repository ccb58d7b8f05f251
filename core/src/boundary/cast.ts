import type { Issue, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type { Coverage, Probed } from "./coverage.js";

interface ToolUse {
  readonly tool: ToolSpec;
  readonly request: RunRequest;
}

/** The parts of the actor kinds that the planner looks at; `plugin/` extends each with what the run calls. */
export interface PlannableExecutor extends Coverage<ToolUse> {
  readonly kind: string;
  issues(use: ToolUse): readonly Issue[];
}

export interface PlannableHarness extends Coverage<RunRequest> {
  readonly id: string;
  readonly aliases: readonly string[];
  issues(request: RunRequest): readonly Issue[];
  /** Names of the request's credentials that can be read inside the sandbox. */
  visibleCredentials(request: RunRequest): readonly string[];
}

export interface PlannableToolSource extends Coverage<McpServer> {
  readonly connection: McpServer["connection"]["type"];
  issues(server: McpServer): readonly Issue[];
}

/** What sits in each seat of a run. */
export interface Seats {
  sandbox: Coverage;
  executor: PlannableExecutor;
  delivery: Coverage;
  harness: PlannableHarness;
  toolSource: PlannableToolSource;
}

/** Everyone who could act, probed, each list in configured order. */
export interface Cast<S extends Seats = Seats> {
  readonly sandboxes: readonly Probed<S["sandbox"]>[];
  readonly executors: readonly Probed<S["executor"]>[];
  readonly deliveries: readonly Probed<S["delivery"]>[];
  readonly harnesses: readonly Probed<S["harness"]>[];
  readonly toolSources: readonly Probed<S["toolSource"]>[];
}

/** An actor in the run, with the tools or servers it acts for. */
export interface Part<A, Use> {
  readonly probed: Probed<A>;
  readonly uses: readonly Use[];
}
