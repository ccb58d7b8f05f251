import { type AmbitError, cancelledByCaller, errorDetailOf, RunnerLost, type StoreFailed } from "@ambit/core";
import { idOfRun, type RunResult } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import type { RunEnd, Store, StoredRun } from "../store/index.js";
import { aboutEnd, type MessageSource } from "../webhooks/messages.js";

/** The end of a run that produced no result. */
export function endedBy(failure: AmbitError, run: MessageSource): RunEnd {
  const { id, session } = run;
  const ended = { runId: idOfRun(id), events: [], sessionId: session };
  const result: RunResult = cancelledByCaller(failure)
    ? { ok: true, ...ended, stopReason: "cancelled" }
    : {
        ok: false,
        ...ended,
        error: failure.message,
        failure: failure.toFailure(),
        errorDetail: errorDetailOf(failure.toFailure(), failure.message),
      };
  return { result: JSON.stringify(result), session, paused: false, delivery: aboutEnd(run, result) };
}

/** Ends runs whose replica is lost. */
export interface LostRunEnder {
  readonly store: Pick<Store, "finish">;
  readonly log: Log;
  /** Called once such a run has ended. */
  readonly onLost: (run: StoredRun) => void;
}

/** Ends a run under the fence that this replica has for it. @throws Error when the store can't be reached */
export async function endLost(
  { store, log, onLost }: LostRunEnder,
  run: StoredRun,
  fence: number,
): Promise<void> {
  const { id: runId, session: sessionId, project: projectId, replica } = run;
  log.warn({ runId, sessionId, projectId, replica }, "a run's replica is lost: the run ends");
  if ((await store.finish(runId, fence, endedBy(new RunnerLost(), run))) === "written") onLost(run);
}

/** Stores the end of a run that has ended here while the store failed. @throws Error when the store can't be reached */
export async function endUnstored(
  { store, log }: Pick<LostRunEnder, "store" | "log">,
  run: StoredRun,
  fence: number,
  failure: StoreFailed,
): Promise<void> {
  log.warn({ runId: run.id }, "a run ended while the store failed: now its end is stored");
  await store.finish(run.id, fence, endedBy(failure, run));
}
