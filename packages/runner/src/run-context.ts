import type { AcceptedPlan } from "@ambit/core";
import type { AgentEvent, RunRequest, Warning } from "@ambit/core/contract";
import type { Log, Sandbox } from "@ambit/core/plugin";
import type { Deadlines } from "./lifetime/deadlines.js";
import type { OwnedScope } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import type { RunServices, SharedWork } from "./run-services.js";

/** What every stop of one run shares. */
export interface RunContext {
  readonly runId: string;
  readonly request: RunRequest;
  readonly plan: AcceptedPlan;
  readonly scope: OwnedScope;
  readonly deadlines: Deadlines;
  readonly limits: RunLimits;
  readonly shared: SharedWork;
  readonly log: Log;
  /** The run's sandbox, once it is open. */
  sandbox(): Sandbox;
  emit(event: AgentEvent): void;
  /** Puts a warning on the result. */
  warn(warning: Warning): void;
}

export function contextOf(
  run: Pick<RunContext, "request" | "plan"> & { readonly id: string; readonly services: RunServices },
  parts: Pick<RunContext, "scope" | "deadlines" | "sandbox" | "emit" | "warn">,
): RunContext {
  return { ...run.services, runId: run.id, request: run.request, plan: run.plan, ...parts };
}

/** The run's first event: what was chosen for it. */
export function announcement({ runId, request, plan }: RunContext): AgentEvent {
  const { sessionId } = request;
  const data = {
    runId,
    harness: plan.harness.actor.id,
    sandbox: plan.sandbox.actor.name,
    ...(sessionId === undefined ? {} : { sessionId }),
  };
  return { type: "data", name: "run", data, transient: true };
}
