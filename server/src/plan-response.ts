import { type PlanResponse, receiptOf } from "@ambit/core";
import type { AdmittedRun } from "@ambit/runner";

/** The response of `POST /plan` and `ambit plan` for a request that may run: its receipt, as far as a plan knows it. */
export function planResponse({ plan, warnings }: AdmittedRun): PlanResponse {
  const { sandbox, enforcement, required, guarantees, actors, accepted } = receiptOf(plan, {
    confinement: "unconfined",
    evidence: {},
    visibleCredentials: [],
    decisions: { allowed: 0, refused: 0 },
    session: { id: "", history: "new" },
  });
  return {
    ok: true,
    plan: { sandbox, enforcement, required, guarantees, actors, accepted },
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  };
}
