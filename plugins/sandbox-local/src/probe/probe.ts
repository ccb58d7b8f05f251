import { availableParallelism } from "node:os";
import {
  closingAfter,
  findingsOf,
  probeSpec,
  runTrial,
  unlimitedBoundary,
  unproven,
} from "@ambit/backend-kit";
import { domainOf, type Evidence, type Finding, type SandboxSpec } from "@ambit/core/plugin";
import { claims } from "../claims.js";
import type { LocalConfig } from "../config.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { OpenOptions } from "../confined/session.js";
import { environmentTrials } from "./environment.js";
import { filesystemTrials } from "./filesystem.js";
import { fixFor } from "./fixes.js";
import { networkTrials } from "./network.js";
import { otherUsers } from "./other-users.js";
import { processTrials } from "./processes.js";
import { cpuTrial, resourceTrials } from "./resources.js";
import { secretTrial } from "./secrets.js";
import { systemCalls } from "./system-calls/trial.js";
import type { Bench, Trial } from "./trial.js";
import { viewTrial } from "./view.js";
import { linkTrial, rulesTrial } from "./workspace-rules.js";

export type OpenForProbe = (spec: SandboxSpec, options?: OpenOptions) => Promise<ConfinedSandbox>;

/** All trials. @param config and the data folder of the sandboxes under probe. */
export const trialsOf = (
  config: Pick<LocalConfig, "scratchMb" | "protectedPaths">,
  dataFolder: string,
): readonly Trial[] => [
  ...networkTrials,
  ...filesystemTrials,
  ...processTrials,
  ...environmentTrials,
  ...resourceTrials,
  viewTrial(config.scratchMb * 1024 * 1024),
  rulesTrial(config, dataFolder),
  linkTrial,
  otherUsers,
  secretTrial,
  systemCalls,
];

/**
 * Runs every trial and returns a finding for every claim. A few at once: each starts several jails, and more would only
 * wait for each other.
 */
export async function probeConfinement(
  open: OpenForProbe,
  signal: AbortSignal,
  trials: readonly Trial[],
): Promise<readonly Finding[]> {
  return withBench(open, signal, undefined, async (common) => {
    let evidence: Evidence;
    try {
      // If this fails there is one reason for every claim: bubblewrap's.
      ({ evidence } = await common.shared(unlimitedBoundary));
    } catch (error) {
      return claims.map((capability) => unproven(capability, error, fixFor));
    }
    const attempt = ({ shows, run }: Trial) =>
      runTrial({ shows, run: () => withBench(open, signal, common, run) }, undefined);
    const outcomes = await inParallel(
      trials.filter((trial) => trial !== cpuTrial),
      attempt,
    );
    // Last, since it measures what the others leave.
    if (trials.includes(cpuTrial)) outcomes.push(await attempt(cpuTrial));
    return findingsOf(claims, outcomes, fixFor).map((finding) => withWarning(finding, evidence));
  });
}

/** bubblewrap's known holes concern what is mounted. */
function withWarning(finding: Finding, { bubblewrapWarning: warning }: Evidence): Finding {
  if (typeof warning !== "string" || !finding.proven || domainOf(finding.capability) !== "filesystem") {
    return finding;
  }
  return { ...finding, warning };
}

/** One more than the processors, since a trial also waits. */
const maxAtOnce = availableParallelism() + 1;

/** @returns their results, in the trials' order. */
async function inParallel<Result>(
  trials: readonly Trial[],
  run: (trial: Trial) => Promise<Result>,
): Promise<Result[]> {
  const results: Promise<Result>[] = [];
  const waiting = trials.values();
  const work = async () => {
    for (const trial of waiting) {
      const running = run(trial);
      results.push(running);
      await running;
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, work));
  return Promise.all(results);
}

/** @param common has the sandboxes that all trials share. Default: this one. */
async function withBench<Result>(
  open: OpenForProbe,
  signal: AbortSignal,
  common: Bench | undefined,
  work: (bench: Bench) => Promise<Result>,
): Promise<Result> {
  const opened: Promise<ConfinedSandbox>[] = [];
  const shared = new Map<string, Promise<ConfinedSandbox>>();
  const bench: Bench = {
    signal,
    async open(boundary, { onDecision, secrets, requiredPaths = [], ...options } = {}) {
      signal.throwIfAborted();
      const spec = probeSpec(boundary, {
        requiredPaths,
        ...(onDecision === undefined ? {} : { onDecision }),
      });
      // The first one shows that jails come up here; every other one is used at once.
      const isTried = common === undefined && opened.length === 0;
      const sandbox = open(secrets === undefined ? spec : { ...spec, secrets }, { ...options, isTried });
      opened.push(sandbox);
      return sandbox;
    },
    shared(boundary) {
      if (common !== undefined) return common.shared(boundary);
      const key = JSON.stringify(boundary);
      const sandbox = shared.get(key) ?? bench.open(boundary);
      shared.set(key, sandbox);
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
