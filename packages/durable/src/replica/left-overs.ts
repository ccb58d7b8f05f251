import {
  type AmbitError,
  cancelledByCaller,
  errorDetailOf,
  messageOf,
  RunnerLost,
  type StoreFailed,
} from "@ambit/core";
import { idOfRun, type RunResult } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { runEnd } from "../run-end.js";
import type { HeldRun, RunEnd, Store, StoredRun } from "../store/index.js";
import type { MessageSource } from "../webhooks/messages.js";

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
  return runEnd(run, result);
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
async function endUnstored(
  { store, log }: Pick<LostRunEnder, "store" | "log">,
  run: StoredRun,
  fence: number,
  failure: StoreFailed,
): Promise<void> {
  log.warn({ runId: run.id }, "a run ended while the store failed: now its end is stored");
  await store.finish(run.id, fence, endedBy(failure, run));
}

/** Ends runs that the store assigns to this replica, and that aren't here: their results couldn't be stored. */
export class LeftOvers {
  /** Runs that something here is creating, claiming or ending, and how many times. */
  readonly #handled = new Map<string, number>();
  /** Runs that ended here while the store failed, until it has their ends. */
  readonly #unstored = new Map<string, StoreFailed>();

  /** @param isHere whether a run is being recorded here. */
  constructor(
    readonly options: LostRunEnder & { readonly store: Pick<Store, "get" | "finish"> },
    readonly isHere: (id: string) => boolean,
  ) {}

  /** Why a run's result isn't in the store. */
  failureOf(id: string): StoreFailed | undefined {
    return this.#unstored.get(id);
  }

  unstored(id: string, failure: StoreFailed): void {
    this.#unstored.set(id, failure);
  }

  /** A run isn't left over while this acts: it creates, claims or ends the run. */
  async whileHandled<Result>(id: string, act: () => Promise<Result>): Promise<Result> {
    const count = (by: number) => (this.#handled.get(id) ?? 0) + by;
    this.#handled.set(id, count(1));
    try {
      return await act();
    } finally {
      const left = count(-1);
      if (left === 0) this.#handled.delete(id);
      else this.#handled.set(id, left);
    }
  }

  /** @param held every run of this replica, as the store has it. */
  end(held: readonly HeldRun[]): void {
    // Each renewal lists a run again until its end is stored.
    for (const { id, fence } of held)
      if (!this.#isActive(id)) void this.whileHandled(id, () => this.#end(id, fence));
    const ids = new Set(held.map(({ id }) => id));
    for (const id of this.#unstored.keys()) if (!ids.has(id)) this.#unstored.delete(id);
  }

  #isActive(id: string): boolean {
    return this.isHere(id) || this.#handled.has(id);
  }

  async #end(id: string, fence: number): Promise<void> {
    const { store, log } = this.options;
    try {
      const run = await store.get(id);
      if (run?.state !== "running" || this.isHere(id)) return;
      const failure = this.#unstored.get(id);
      if (failure === undefined) await endLost(this.options, run, fence);
      else await endUnstored(this.options, run, fence, failure);
      this.#unstored.delete(id);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a run that was lost could not be ended");
    }
  }
}
