import type { Capability, Finding } from "@ambit/core/plugin";
import type { Mechanism } from "../mechanisms.js";
import { closingAfter } from "../probe/bench.js";
import { findingsOf, unproven } from "../probe/findings.js";
import { NotProven, runTrial, type TrialOutcome } from "../probe/trial.js";
import type { StandardTrial } from "./bench.js";
import { makeDecoys } from "./decoys.js";
import { makeBench } from "./make-bench.js";
import type { ProbedSandbox, StandardProbe } from "./standard-probe.js";
import { filesTrial } from "./trials/filesystem.js";
import { inboundTrial } from "./trials/inbound.js";
import { listsTrial, networkTrial } from "./trials/network.js";
import { privilegesTrial } from "./trials/privileges.js";
import { namedTrial, processTrial } from "./trials/processes.js";
import { cpuTrial, limitTrials } from "./trials/resources.js";
import { secretTrial } from "./trials/secrets.js";
import { sharedMemoryTrial } from "./trials/shared-memory.js";
import { shownFilesTrial } from "./trials/shown-files.js";
import { systemCallsTrial } from "./trials/system-calls.js";

/** By what they try. A backend whose own probe shows one of them better leaves it out. */
export const standardTrials = {
  network: networkTrial,
  lists: listsTrial,
  files: filesTrial,
  shownFiles: shownFilesTrial,
  processes: processTrial,
  sharedMemory: sharedMemoryTrial,
  privileges: privilegesTrial,
  named: namedTrial,
  secrets: secretTrial,
  inbound: inboundTrial,
} as const satisfies Readonly<Record<string, StandardTrial>>;

type TrialName = keyof typeof standardTrials | "limits" | "systemCalls" | "cpu";

/** The trials that notice a missing mechanism; a reason where only the kit's attacks or a backend's own trials do. */
export const probedBy: Readonly<Record<Mechanism, readonly [TrialName, ...TrialName[]] | string>> = {
  "network namespace": ["network"],
  allowlist: ["lists"],
  "server name check": "it needs a server with certificates for each name",
  "host header check": "it needs a server that tells what it was asked for",
  "hidden host files": ["files"],
  "covered kernel tables": ["shownFiles"],
  "workspace mode": ["files"],
  "path rules": "few backends have them: a trial of their own",
  "rules for all jails that live": "it takes a race of many launches",
  "second bubblewrap": "it takes a race of many launches",
  "no-follow file access": "it is the runner's own, the same for all sandboxes of a backend",
  "session separation": ["files", "processes"],
  "closed descriptors": "it takes a runner of its own",
  "no new privileges": ["privileges"],
  "pid namespace": ["processes"],
  "ipc namespace": ["sharedMemory"],
  "user namespace": ["processes"],
  "refusal of nested user namespaces": ["systemCalls"],
  "system call filter": ["systemCalls"],
  "guard of the first process": "only a backend knows what its first process is",
  "exit with the runner": "it takes a runner of its own",
  "private scratch": ["processes"],
  "cleared environment": ["named", "secrets"],
  "credential broker": ["secrets"],
  limits: ["limits", "cpu"],
  "inbound port list": ["inbound"],
  "inbound relay": ["inbound"],
};

const allTrials = ({ refusedCalls }: StandardProbe): readonly StandardTrial[] => [
  ...Object.values(standardTrials),
  ...limitTrials,
  systemCallsTrial(refusedCalls),
  cpuTrial,
];

/**
 * Tests every claim in sandboxes of the backend, with a control: a plain process of this host, or no limit.
 *
 * @param trials default: all that fit every kind of sandbox.
 */
export async function probeSandboxes<Box extends ProbedSandbox>(
  probe: StandardProbe<Box>,
  signal: AbortSignal,
  trials: readonly StandardTrial<Box>[] = allTrials(probe),
): Promise<readonly Finding[]> {
  const { claims, fixFor, reachedAt } = probe;
  const decoys = await makeDecoys(reachedAt);
  const opened: Promise<Box>[] = [];
  const deferred: (() => void | Promise<void>)[] = [];
  const closeAll = async () => {
    const settled = await Promise.allSettled(opened);
    await Promise.all(settled.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
    for (const close of deferred.splice(0).reverse()) await close();
  };
  let lost: Error | undefined;
  const bench = makeBench(probe, decoys, signal, async (spec, options) => {
    signal.throwIfAborted();
    const isLimited = Object.keys(spec.boundary.resources).length > 0;
    // An attack on a limit may end its sandbox; nothing else may.
    const onFailure = (failure: Error) => {
      if (!isLimited) lost ??= failure;
    };
    const sandbox = probe.open(
      { ...spec, onFailure },
      { signal, defer: (close) => void deferred.push(close) },
      options,
    );
    opened.push(sandbox);
    return await sandbox;
  });
  const claimed = trials.filter(({ shows }) => shows.some((capability) => claims.includes(capability)));
  const underWay = new Set<StandardTrial<Box>>();
  const outcomeOf = (trial: StandardTrial<Box>): Promise<TrialOutcome<Capability>> => {
    underWay.add(trial);
    return runTrial(trial, bench).finally(() => underWay.delete(trial));
  };
  // What fails once the time is over fails for that reason: only what was still being tried says anything.
  const late = new Promise<never>((_resolve, reject) => {
    const rejectWithTrials = () => reject(stillTrying([...underWay]));
    // The time may be over already: making the decoys takes some of it.
    if (signal.aborted) rejectWithTrials();
    else AbortSignal.any([signal]).addEventListener("abort", rejectWithTrials, { once: true });
  });
  late.catch(() => undefined);
  const inTime = <Result>(work: Promise<Result>): Promise<Result> => Promise.race([late, work]);
  try {
    return await closingAfter(signal, closeAll, async () => {
      // First and alone: if it fails there is one reason for everything.
      await inTime(bench.closed());
      const outcomes = await inTime(Promise.all(claimed.filter(({ measures }) => !measures).map(outcomeOf)));
      for (const trial of claimed.filter(({ measures }) => measures))
        outcomes.push(await inTime(outcomeOf(trial)));
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

/** Names the trials that took too long, by what they try to show. */
function stillTrying(trials: readonly Pick<StandardTrial, "shows">[]): NotProven {
  const names = [...new Set(trials.map(({ shows }) => shows.join(" and ")))].join("; ");
  const what = names === "" ? "its first sandbox wasn't open yet" : `it was still trying ${names}`;
  return new NotProven(what, "try again when this host is less busy");
}
