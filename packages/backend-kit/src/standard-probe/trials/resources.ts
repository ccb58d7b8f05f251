import { expectThat, probeSpec } from "@ambit/backend-kit";
import { type ResourceLimits, SandboxFailed } from "@ambit/core/plugin";
import type { Claim } from "../claims.js";
import { type Bench, lookInside, type Reached, type Trial } from "./bench.js";

const [memoryMb, processes, cpus, diskMb] = [128, 40, 0.1, 16];

/** Each in a container of its own: what a limit ends may be all of it. */
export const resourceTrials: readonly Trial[] = [
  limitTrial("resources.memory", { memoryMb }, (bench, sandbox) =>
    lookInside(sandbox, bench, { had: { try: "memory", mib: memoryMb * 2 } }),
  ),
  limitTrial("resources.processes", { processes }, (bench, sandbox) =>
    lookInside(sandbox, bench, { had: { try: "processes", count: processes } }),
  ),
  limitTrial("resources.disk", { diskMb }, (bench, sandbox) =>
    lookInside(
      sandbox,
      bench,
      { had: { try: "disk", folder: sandbox.home, mib: diskMb * 2 } },
      { role: "agent" },
    ),
  ),
  {
    shows: ["resources.cpu"],
    async run(bench) {
      const slow = await bench.open(
        probeSpec({ network: { mode: "off", rules: [] }, resources: { cpus } }),
        {},
      );
      const had = async (sandbox: Sandbox) => {
        const { cores } = await lookInside(sandbox, bench, { cores: { try: "cpu", ms: 1_000 } });
        return Number(cores ?? Number.NaN) / 100;
      };
      const kept = await had(slow);
      // A busy host gives less than it has: it is asked again.
      let free = 0;
      for (let tries = 0; tries < 5 && !(free > cpus * 2); tries += 1) free = await had(bench.closed);
      const seen = `${free} cores were had without a limit, and ${kept} with one of ${cpus}`;
      expectThat(kept < cpus * 1.8 && free > cpus * 2, seen);
      return { "resources.cpu": seen };
    },
  },
];

type Sandbox = Bench["closed"];

function limitTrial(
  claim: Claim,
  limit: ResourceLimits,
  take: (bench: Bench, sandbox: Sandbox) => Promise<Reached>,
): Trial {
  return {
    shows: [claim],
    async run(bench) {
      const limited = await bench.open(
        probeSpec({ network: { mode: "off", rules: [] }, resources: limit }),
        {},
      );
      const free = await take(bench, bench.closed);
      expectThat(
        (free.had ?? null) !== null,
        "without the limit it can't be used either, so nothing is proven",
      );
      const ending = "ends the container";
      const kept = await take(bench, limited).catch((error: unknown) => {
        // gVisor ends with the process that needed too much: the limit holds, and the run fails.
        if (claim === "resources.memory" && error instanceof SandboxFailed)
          return { [ending]: ending, had: null };
        throw error;
      });
      expectThat((kept.had ?? null) === null, `${kept.had} were had in spite of the limit`);
      if (!(ending in kept)) await lookInside(limited, bench, { kernel: { try: "kernel" } });
      const [[name, value] = []] = Object.entries(limit);
      const how = `${free.had} were had without a limit, and not with ${name} ${value}`;
      return { [claim]: ending in kept ? `${how}, which ${ending}` : how };
    },
  };
}
