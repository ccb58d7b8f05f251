import type { Capability, Finding } from "@ambit/core/plugin";
import { closingAfter } from "../probe/bench.js";
import { findingsOf, unproven } from "../probe/findings.js";
import { runInTurn, runTrial } from "../probe/trial.js";
import { makeBench, type Trial } from "./bench.js";
import { makeDecoys } from "./decoys.js";
import type { ProbedSandbox, StandardProbe } from "./standard-probe.js";
import { filesTrial } from "./trials/filesystem.js";
import { listsTrial, networkTrial } from "./trials/network.js";
import { privilegesTrial } from "./trials/privileges.js";
import { namedTrial, perToolTrial, processTrial } from "./trials/processes.js";
import { cpuTrial, limitTrials } from "./trials/resources.js";
import { secretTrial } from "./trials/secrets.js";
import { sharedMemoryTrial } from "./trials/shared-memory.js";
import { shownFilesTrial } from "./trials/shown-files.js";
import { systemCallsTrial } from "./trials/system-calls.js";

const trialsOf = ({ refusedCalls }: StandardProbe): readonly Trial[] => [
  networkTrial,
  listsTrial,
  filesTrial,
  shownFilesTrial,
  processTrial,
  sharedMemoryTrial,
  privilegesTrial,
  perToolTrial,
  namedTrial,
  secretTrial,
  systemCallsTrial(refusedCalls),
];

/** Tests every claim in sandboxes of the backend, with a control: a plain process of this host, or no limit. */
export async function probeSandboxes(probe: StandardProbe, signal: AbortSignal): Promise<readonly Finding[]> {
  const { claims, fixFor } = probe;
  const decoys = await makeDecoys();
  const opened: Promise<ProbedSandbox>[] = [];
  const closeAll = async () => {
    const settled = await Promise.allSettled(opened);
    await Promise.all(settled.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
  };
  let lost: Error | undefined;
  const bench = makeBench(probe, decoys, signal, async (spec, options) => {
    signal.throwIfAborted();
    const isLimited = Object.keys(spec.boundary.resources).length > 0;
    // An attack on a limit may end its sandbox; nothing else may.
    const onFailure = (failure: Error) => {
      if (!isLimited) lost ??= failure;
    };
    const sandbox = probe.open({ ...spec, onFailure }, { signal, defer: () => undefined }, options);
    opened.push(sandbox);
    return await sandbox;
  });
  const claimed = ({ shows }: { readonly shows: readonly Capability[] }) =>
    shows.some((capability) => claims.includes(capability));
  try {
    return await closingAfter(signal, closeAll, async () => {
      // First and alone: if it fails there is one reason for everything.
      await bench.closed();
      const parallel = [...trialsOf(probe), ...limitTrials].filter(claimed);
      const outcomes = await Promise.all(parallel.map((trial) => runTrial(trial, bench)));
      // Last, since it measures what the others leave.
      outcomes.push(...(await runInTurn([cpuTrial].filter(claimed), bench, signal)));
      // Then the missing observations say nothing about the platform, and everything must be tried again.
      if (lost !== undefined) throw lost;
      return findingsOf(claims, outcomes, fixFor);
    });
  } catch (error) {
    return claims.map((claim) => unproven(claim, error, fixFor));
  } finally {
    await decoys.close();
  }
}
