import { quietLog, unproven } from "@ambit/backend-kit";
import type { Capability, Finding } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import { claimsOf } from "../claims.js";
import { fixOf } from "../platform/failure.js";
import { runCanary } from "./run.js";
import { FindingStore } from "./store.js";

/** The findings of the last canary, or of a new one. First cleans up after dead runners. Those of some claims only aren't kept. */
export async function probeDaytona(
  account: Account,
  key: string,
  signal: AbortSignal,
  claims: readonly Capability[],
): Promise<readonly Finding[]> {
  const isWhole = claimsOf(account.config).every((claim) => claims.includes(claim));
  const store = new FindingStore(account);
  const stored = isWhole ? await store.find(key) : undefined;
  if (stored !== undefined) return stored;
  try {
    await account.reaper.keepReaping(quietLog);
  } catch (error) {
    // Without a list of leftovers there is no clean-up, and then no sandbox is opened either.
    return claims.map((claim) => unproven(claim, error, fixOf));
  }
  const { findings, complete } = await runCanary(account, signal, claims);
  if (isWhole) await store.keep(key, findings, complete);
  return findings;
}
