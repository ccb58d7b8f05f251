import type { AmbitError } from "@ambit/core";
import type { FailureCode } from "@ambit/core/contract";
import type { RunStage } from "../run-state.js";

/** Failures after which the evidence of the sandbox and the harness is taken again; the others, of a failed start. */
const doubtful: ReadonlySet<FailureCode> = new Set(["sandbox_failed", "plugin_broke_contract"]);
const doubtfulAtStart: ReadonlySet<FailureCode> = new Set([...doubtful, "harness_failed", "run_timed_out"]);

/**
 * Whose evidence may not hold after a failure, and is taken again before the next plan counts on it: everybody's runs
 * wait for that. A failure that an agent or a request can bring about says nothing of the host. Pure.
 */
export function doubtOf(failure: AmbitError, stage: RunStage): readonly ("sandbox" | "harness")[] {
  // The agent of an earlier turn may have prepared this one. The session is given up; a new one shows the host.
  if (stage === "reusing") return [];
  const isDoubtful = (stage === "started" ? doubtful : doubtfulAtStart).has(failure.code);
  if (!isDoubtful || concernsSession(failure)) return [];
  // A broken agent says nothing about the sandbox, whose probe takes seconds.
  return failure.code === "harness_failed" ? ["harness"] : ["sandbox", "harness"];
}

function concernsSession(failure: AmbitError): boolean {
  return failure.code === "sandbox_failed" && "concerns" in failure && failure.concerns === "session";
}
