import { type AmbitError, RunnerLost } from "@ambit/core";
import type { RunResult } from "@ambit/core/contract";
import type { RunEnd } from "@ambit/core/plugin";
import { aboutEnd, type MessageSource } from "./webhooks/messages.js";

/** The end of a run that has no result of its own. */
export function endedBy(failure: AmbitError, run: MessageSource): RunEnd {
  const { id, session } = run;
  const result: RunResult = {
    ok: false,
    runId: id,
    events: [],
    ...(session === undefined ? {} : { sessionId: session }),
    error: failure.message,
    failure: failure.toFailure(),
  };
  return { result: JSON.stringify(result), session, paused: false, deliveries: aboutEnd(run, result) };
}

export const lostEnd = (run: MessageSource) => endedBy(new RunnerLost(), run);
