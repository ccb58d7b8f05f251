import type { Finding, SandboxSpec } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress/proxy";
import { type Claim, claims } from "../claims.js";
import type { LocalConfig } from "../config.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import { environmentTrials } from "./environment.js";
import { filesystemTrials } from "./filesystem.js";
import { fixFor } from "./fixes.js";
import { networkTrials } from "./network.js";
import { processTrials } from "./processes.js";
import { resourceTrials } from "./resources.js";
import { systemCalls } from "./system-calls/trial.js";
import { type Bench, NotProven, probeSpec, type Seen, type Trial } from "./trial.js";
import { viewTrial } from "./view.js";

export type OpenForProbe = (spec: SandboxSpec, lookup?: Lookup) => Promise<ConfinedSandbox>;

/** Everything that is tried. @param config of the sandboxes under probe. */
export const trialsOf = (config: Pick<LocalConfig, "scratchMb">): readonly Trial[] => [
  ...networkTrials,
  ...filesystemTrials,
  ...processTrials,
  ...environmentTrials,
  ...resourceTrials,
  viewTrial(config.scratchMb * 1024 * 1024),
  systemCalls,
];

/** When this fails there is one reason for everything, and it is bubblewrap's. */
const anyJail: Trial = {
  shows: [],
  run: async (bench) => {
    await bench.open({});
    return {};
  },
};

/** Runs every trial, side by side, and says of every claim what was seen. */
export async function probeConfinement(
  open: OpenForProbe,
  signal: AbortSignal,
  trials: readonly Trial[],
): Promise<readonly Finding[]> {
  try {
    await attempt(anyJail, open, signal);
  } catch (error) {
    return claims.map((capability) => unproven(capability, error));
  }
  const outcomes = await Promise.all(
    trials.map(async (trial) => {
      const seen: Seen | NotProven = await attempt(trial, open, signal).catch(asNotProven);
      return new Map(
        trial.shows.map((capability) => [
          capability,
          seen instanceof NotProven ? seen : (seen[capability] ?? new NotProven("nothing was seen of it")),
        ]),
      );
    }),
  );
  return claims.map((capability) =>
    findingOf(
      capability,
      outcomes.flatMap((outcome) => outcome.get(capability) ?? []),
    ),
  );
}

/** Proven when every trial of it shows it, and when there is one. Pure. */
function findingOf(capability: Claim, outcomes: readonly (string | NotProven)[]): Finding {
  const said = outcomes.filter((outcome) => typeof outcome === "string");
  const failed = outcomes.find((outcome) => typeof outcome !== "string");
  if (failed !== undefined) return unproven(capability, failed);
  if (said.length === 0) return unproven(capability, new NotProven("nothing was tried"));
  return { capability, proven: true, how: said.join("; ") };
}

const asNotProven = (error: unknown) =>
  error instanceof NotProven ? error : new NotProven(error instanceof Error ? error.message : String(error));

async function attempt(trial: Trial, open: OpenForProbe, signal: AbortSignal): Promise<Seen> {
  const opened: Promise<ConfinedSandbox>[] = [];
  const bench: Bench = {
    signal,
    async open(boundary, { lookup, onDecision } = {}) {
      signal.throwIfAborted();
      const sandbox = open(probeSpec(boundary, onDecision), lookup);
      opened.push(sandbox);
      return sandbox;
    },
  };
  // Also what is still being opened while another of the trial's sandboxes was refused.
  const closeAll = async () => {
    const settled = await Promise.allSettled(opened);
    await Promise.all(settled.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
  };
  // Whatever a trial waits for ends with its sandboxes; what goes wrong then shows at the other call below.
  const stop = () => void closeAll().catch(() => undefined);
  const over = AbortSignal.any([signal]);
  over.addEventListener("abort", stop, { once: true });
  try {
    return await trial.run(bench);
  } finally {
    over.removeEventListener("abort", stop);
    await closeAll();
  }
}

function unproven(capability: Claim, error: unknown): Finding {
  const reason = error instanceof Error ? error.message : String(error);
  return { capability, proven: false, reason, fix: fixFor(reason) };
}
