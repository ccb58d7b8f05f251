import type { Issue, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type { Boundary } from "./boundary.js";
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

/** Where the programs in a sandbox come from: the runner's files, seen at their own paths, or an image of its own. */
export type Programs = "runner" | "image";

/** A credential that programs in the sandbox send to some hosts, and needn't be able to read. */
export interface HiddenCredential {
  /** Unique in a run: the variable that holds it. */
  readonly name: string;
  readonly value: string;
  /** Canonical names that it may be sent to; never empty. */
  readonly hosts: readonly string[];
}

export interface PlannableSandbox extends Coverage {
  /** Default `runner`. */
  readonly programs?: Programs;
  /**
   * Whether under this boundary `open` takes credentials for these hosts: what stands inside is a placeholder, which
   * is replaced on the way to one of them. Absent: it takes none. Pure.
   */
  hides?(hosts: readonly string[], boundary: Boundary): boolean;
}

export interface PlannableHarness extends Coverage<RunRequest> {
  readonly id: string;
  readonly aliases: readonly string[];
  issues(request: RunRequest, programs: Programs): readonly Issue[];
  /** Names of the request's credentials that can be read inside the sandbox. */
  visibleCredentials(request: RunRequest): readonly string[];
  /** Those among them that the agent only sends to its model. Default: none. */
  hideableCredentials?(request: RunRequest): readonly HiddenCredential[];
}

export interface PlannableToolSource extends Coverage<McpServer> {
  readonly connection: McpServer["connection"]["type"];
  issues(server: McpServer): readonly Issue[];
}

/** What sits in each seat of a run. */
export interface Seats {
  sandbox: PlannableSandbox;
  executor: PlannableExecutor;
  delivery: Coverage;
  harness: PlannableHarness;
  toolSource: PlannableToolSource;
}

/** Everyone who could act, probed, each list in configured order. */
export interface Candidates<S extends Seats = Seats> {
  readonly sandboxes: readonly Probed<S["sandbox"]>[];
  readonly executors: readonly Probed<S["executor"]>[];
  readonly deliveries: readonly Probed<S["delivery"]>[];
  readonly harnesses: readonly Probed<S["harness"]>[];
  readonly toolSources: readonly Probed<S["toolSource"]>[];
}

/** An actor in the run, with the tools or servers it acts for. */
export interface PlannedActor<A, Use> {
  readonly probed: Probed<A>;
  readonly uses: readonly Use[];
}
