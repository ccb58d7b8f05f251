import { type AmbitError, RunnerLost } from "@ambit/core";
import type { RunEnd, StoredRun } from "@ambit/core/plugin";

/** The end of a run that has no result of its own. */
export function endedBy(failure: AmbitError, { id, session }: Pick<StoredRun, "id" | "session">): RunEnd {
  const result = {
    ok: false,
    runId: id,
    events: [],
    ...(session === undefined ? {} : { sessionId: session }),
    error: failure.message,
    failure: failure.toFailure(),
  };
  return { result: JSON.stringify(result), session, paused: false };
}

export const lostEnd = (run: Pick<StoredRun, "id" | "session">) => endedBy(new RunnerLost(), run);
