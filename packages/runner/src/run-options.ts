import type { CallerRules } from "./caller-rules.js";

export interface RunOptions {
  /** Names the run where the request doesn't. Default: a random id. */
  readonly runId?: string;
  /** Whether the result carries the events; a stream's doesn't, they came before it. */
  readonly keepsEvents: boolean;
  /** Whose run it is. Default: the operator's. */
  readonly caller?: CallerRules;
}
