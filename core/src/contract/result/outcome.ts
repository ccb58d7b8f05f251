import { z } from "zod";
import type { RunResult } from "./result.js";

/** What a run came to. `paused`: it waits for its user. `cancelled`: its caller ended it. Every other failure is `failed`. */
export const runOutcomeSchema = z.enum(["completed", "paused", "cancelled", "failed"]);
export type RunOutcome = z.infer<typeof runOutcomeSchema>;

/** Pure. */
export function outcomeOf({ ok, stopReason }: Pick<RunResult, "ok" | "stopReason">): RunOutcome {
  if (!ok) return "failed";
  return stopReason === "paused" || stopReason === "cancelled" ? stopReason : "completed";
}
