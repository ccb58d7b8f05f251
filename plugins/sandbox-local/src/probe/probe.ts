import { closingAfter, findingsOf, probeSpec, runTrial, unproven } from "@ambit/backend-kit";
import type { Finding, SandboxSpec } from "@ambit/core/plugin";
import { claims } from "../claims.js";
import type { LocalConfig } from "../config.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { OpenOptions } from "../confined/session.js";
import { environmentTrials } from "./environment.js";
import { filesystemTrials } from "./filesystem.js";
import { fixFor } from "./fixes.js";
import { networkTrials } from "./network.js";
import { processTrials } from "./processes.js";
import { resourceTrials } from "./resources.js";
import { secretTrial } from "./secrets.js";
import { systemCalls } from "./system-calls/trial.js";
import type { Bench, Trial } from "./trial.js";
import { viewTrial } from "./view.js";

export type OpenForProbe = (spec: SandboxSpec, options?: OpenOptions) => Promise<ConfinedSandbox>;

/** All trials. @param config of the sandboxes under probe. */
export const trialsOf = (config: Pick<LocalConfig, "scratchMb">): readonly Trial[] => [
  ...networkTrials,
  ...filesystemTrials,
  ...processTrials,
  ...environmentTrials,
  ...resourceTrials,
  viewTrial(config.scratchMb * 1024 * 1024),
  secretTrial,
  systemCalls,
];

/** Runs every trial, in parallel, and returns a finding for every claim. */
export async function probeConfinement(
  open: OpenForProbe,
  signal: AbortSignal,
  trials: readonly Trial[],
): Promise<readonly Finding[]> {
  try {
    // If this fails there is one reason for every claim: bubblewrap's.
    await withBench(open, signal, (bench) => bench.open({}));
  } catch (error) {
    return claims.map((capability) => unproven(capability, error, fixFor));
  }
  const attempts = trials.map(({ shows, run }) => ({
    shows,
    run: () => withBench(open, signal, run),
  }));
  const outcomes = await Promise.all(attempts.map((attempt) => runTrial(attempt, undefined)));
  return findingsOf(claims, outcomes, fixFor);
}

async function withBench<Result>(
  open: OpenForProbe,
  signal: AbortSignal,
  work: (bench: Bench) => Promise<Result>,
): Promise<Result> {
  const opened: Promise<ConfinedSandbox>[] = [];
  const bench: Bench = {
    signal,
    async open(boundary, { onDecision, secrets, ...options } = {}) {
      signal.throwIfAborted();
      const spec = probeSpec(boundary, onDecision === undefined ? {} : { onDecision });
      const sandbox = open(secrets === undefined ? spec : { ...spec, secrets }, options);
      opened.push(sandbox);
      return sandbox;
    },
  };
  // Includes a sandbox that is still being opened while another one of the trial was refused.
  const closeAll = async () => {
    const settled = await Promise.allSettled(opened);
    await Promise.all(settled.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
  };
  return closingAfter(signal, closeAll, () => work(bench));
}
