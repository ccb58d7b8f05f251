import type { AcceptedPlan, AmbitError } from "@ambit/core";
import type { FailureCode } from "@ambit/core/contract";
import type { RunStage } from "./run-state.js";

export interface FailedRun {
  readonly plan: Pick<AcceptedPlan, "sandbox" | "harness" | "own">;
  readonly stage: RunStage;
}

type PlannedActor = AcceptedPlan["sandbox" | "harness"]["actor"];

/** Failures after which both the sandbox and the harness are probed again; the others are failures to start. */
const doubtful: ReadonlySet<FailureCode> = new Set(["sandbox_failed", "plugin_broke_contract"]);
const doubtfulAtStart: ReadonlySet<FailureCode> = new Set([...doubtful, "harness_failed", "run_timed_out"]);

/** Of the plan, the actors that `actorsToProbeAgain` names. Pure. */
export function actorsInDoubt(failure: AmbitError, { plan, stage }: FailedRun): ReadonlySet<PlannedActor> {
  const actors = actorsToProbeAgain(failure, stage).flatMap((kind): readonly PlannedActor[] => {
    // The sandbox that failed may be git's own.
    const others = kind === "sandbox" ? [...plan.own.values()].map(({ actor }) => actor) : [];
    return [plan[kind].actor, ...others];
  });
  return new Set(actors);
}

/**
 * The kinds of actors whose evidence a failure puts in doubt. They are probed again before the next plan, and all runs
 * wait for that. A failure that an agent or a request can cause says nothing about the host. Pure.
 */
export function actorsToProbeAgain(failure: AmbitError, stage: RunStage): readonly ("sandbox" | "harness")[] {
  // The agent of an earlier turn may have caused this. The session is closed; only a new one says something about the
  // host.
  if (stage === "reusing") return [];
  const isDoubtful = (stage === "started" ? doubtful : doubtfulAtStart).has(failure.code);
  if (!isDoubtful || concernsSession(failure)) return [];
  // A broken agent says nothing about the sandbox, whose probe takes seconds.
  return failure.code === "harness_failed" ? ["harness"] : ["sandbox", "harness"];
}

function concernsSession(failure: AmbitError): boolean {
  return failure.code === "sandbox_failed" && "concerns" in failure && failure.concerns === "session";
}
