import type { CallersTrace } from "../parse/callers-trace.js";
import type { CallerRules } from "./caller-rules.js";

export interface RunOptions {
  /** The run's id, unless the request has one. Default: a random id. */
  readonly runId?: string;
  /** Whether the result includes the events. A stream's doesn't: it sent them before. */
  readonly keepsEvents: boolean;
  /** The caller's trace where the request's `context` has none: headers of its HTTP request. Default: none. */
  readonly trace?: CallersTrace;
  /** The caller that owns the run. Default: the operator. */
  readonly caller?: CallerRules;
}
