import type { AcceptedPlan } from "@ambit/core";
import type { AgentEvent, RunRequest } from "@ambit/core/contract";

/** The run's first event: what was chosen for it. Pure. */
export function announcement(
  runId: string,
  { sessionId }: RunRequest,
  { harness, sandbox }: AcceptedPlan,
): AgentEvent {
  const data = {
    runId,
    harness: harness.actor.id,
    sandbox: sandbox.actor.name,
    ...(sessionId === undefined ? {} : { sessionId }),
  };
  return { type: "data", name: "run", data, transient: true };
}
