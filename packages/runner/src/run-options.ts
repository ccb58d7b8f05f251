import type { CallerRules } from "./caller-rules.js";

export interface RunOptions {
  /** The run's id, unless the request has one. Default: a random id. */
  readonly runId?: string;
  /** Whether the result includes the events. A stream's doesn't: it sent them before. */
  readonly keepsEvents: boolean;
  /** The caller that owns the run. Default: the operator. */
  readonly caller?: CallerRules;
}
