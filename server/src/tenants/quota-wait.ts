import type { Tenant } from "./schema.js";

/** A project's usage of its quotas. */
export interface QuotaUsage {
  /** Runs in progress. */
  readonly running: number;
  /** Runs that began within the last 60 seconds. */
  readonly begun: number;
  /** Milliseconds until the first of those runs is 60 seconds old. */
  readonly minuteLeftMs: number;
  /** US dollars on this day (UTC). */
  readonly usd: number;
  /** Milliseconds until that day ends. */
  readonly dayLeftMs: number;
}

/** Which quota is used up, and when a run may succeed. Undefined: there is room for one. Pure. */
export function waitFor(
  { running, begun, minuteLeftMs, usd, dayLeftMs }: QuotaUsage,
  { concurrentRuns, runsPerMinute, usdPerDay }: Tenant["limits"],
): { readonly why: string; readonly ms: number } | undefined {
  if (usdPerDay !== undefined && usd >= usdPerDay)
    return { why: `${usdPerDay} US dollars a day`, ms: dayLeftMs };
  if (runsPerMinute !== undefined && begun >= runsPerMinute)
    return { why: `${runsPerMinute} runs a minute`, ms: minuteLeftMs };
  if (concurrentRuns !== undefined && running >= concurrentRuns)
    return { why: `${concurrentRuns} concurrent runs`, ms: 1_000 };
  return undefined;
}
