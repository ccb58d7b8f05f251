import type { OwnSandbox } from "@ambit/core";
import type { EnvironmentReceipt, SourceReceipt, Warning } from "@ambit/core/contract";
import type { Boundary, Log, Sandbox, SandboxBackend } from "@ambit/core/plugin";
import type { ReportSetup } from "./environment/report.js";

/** What finds out what one run's sandbox may begin with. */
export interface BeginOptions {
  /** Opens one of `ownSandboxes`. */
  readonly open: (own: OwnSandbox) => Promise<Sandbox>;
  /** The run's backend. */
  readonly backend: Pick<SandboxBackend, "name" | "layers">;
  /** The agent's. */
  readonly boundary: Boundary;
  /** Opens a sandbox, as one of `ownSandboxes`, whose files become the layer of this name. */
  readonly openLayer: (own: OwnSandbox, name: string) => Promise<Sandbox>;
  /** Whether what the run prepares may be kept for others of its project. */
  readonly mayKeep: boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** What fills one run's workspace. */
export interface FillOptions extends BeginOptions {
  /** What its sandbox began with. Undefined for an empty one. */
  readonly begun: Filled | undefined;
  readonly report: ReportSetup;
  readonly warn: (warning: Warning) => void;
}

/** What a sandbox can begin with. */
export interface Beginning {
  /** The layer's name. */
  readonly layer: string;
  readonly filled: Filled;
}

/** What a workspace was filled with. */
export interface Filled {
  readonly sources: readonly SourceReceipt[] | undefined;
  readonly environment: EnvironmentReceipt | undefined;
}
