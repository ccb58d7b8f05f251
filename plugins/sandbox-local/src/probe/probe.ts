import type { Finding, SandboxSpec } from "@ambit/core/plugin";
import { type Claim, claims } from "../claims.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { Lookup } from "../egress/index.js";
import { cureFor } from "./cures.js";
import { environmentTrials } from "./environment.js";
import { filesystemTrials } from "./filesystem.js";
import { networkTrials } from "./network.js";
import { processTrials } from "./processes.js";
import { resourceTrials } from "./resources.js";
import { type Bench, NotProven, probeSpec, type Trial } from "./trial.js";

export type OpenForProbe = (spec: SandboxSpec, lookup?: Lookup) => Promise<ConfinedSandbox>;

const trials = [
  ...networkTrials,
  ...filesystemTrials,
  ...processTrials,
  ...environmentTrials,
  ...resourceTrials,
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
export async function probeConfinement(open: OpenForProbe, signal: AbortSignal): Promise<readonly Finding[]> {
  const found = new Map<Claim, Finding>();
  try {
    await attempt(anyJail, open, signal);
  } catch (error) {
    return claims.map((capability) => unproven(capability, error));
  }
  await Promise.all(
    trials.map(async (trial) => {
      try {
        const seen = await attempt(trial, open, signal);
        for (const capability of trial.shows) {
          const how = seen[capability];
          if (how !== undefined) found.set(capability, { capability, proven: true, how });
        }
      } catch (error) {
        for (const capability of trial.shows) found.set(capability, unproven(capability, error));
      }
    }),
  );
  return claims.map(
    (capability) => found.get(capability) ?? unproven(capability, new NotProven("nothing was seen of it")),
  );
}

async function attempt(trial: Trial, open: OpenForProbe, signal: AbortSignal): ReturnType<Trial["run"]> {
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
  return { capability, proven: false, reason, cure: cureFor(reason) };
}
