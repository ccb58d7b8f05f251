import type { LostRun } from "@ambit/core/plugin";
import type { TraceStart } from "./run-trace.js";
import { type EndedSpan, Span } from "./span.js";

/** The span of a run whose process died, from what the store has of it. */
export function lostRun(
  { runId, harness, sandbox, begunAt }: LostRun,
  { traceId, flags }: TraceStart,
  now: () => number = Date.now,
): EndedSpan {
  const span = new Span(
    {
      ...{ traceId, flags, tracestate: undefined, parent: undefined },
      ...{ name: `invoke_agent ${harness}`, start: begunAt },
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": harness,
        "gen_ai.response.finish_reasons": ["error"],
        "ambit.run.id": runId,
        "ambit.sandbox": sandbox,
      },
    },
    now,
  );
  span.failed("runner_lost", "The process that had the run ended before it.");
  return span.end();
}
