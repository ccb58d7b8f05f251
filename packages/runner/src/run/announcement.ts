import type { AcceptedPlan } from "@ambit/core";
import type { AgentEvent, RunRequest } from "@ambit/core/contract";

/** The run's first events: the id of its turn, if it is one of a session, and what was chosen for it. Pure. */
export function announcements(
  runId: string,
  { sessionId, turnId = runId }: RunRequest,
  { harness, sandbox }: AcceptedPlan,
): readonly AgentEvent[] {
  const data = {
    runId,
    harness: harness.actor.id,
    sandbox: sandbox.actor.name,
    sessionId,
  };
  const run = { type: "data", name: "run", data, transient: true } as const;
  return sessionId === undefined ? [run] : [run, { type: "turn", turnId }];
}
