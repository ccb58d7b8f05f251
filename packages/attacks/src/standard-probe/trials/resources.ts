import { type Capability, type ResourceLimits, type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { Bench, Trial } from "../bench.js";
import { Killed, lookInside, type Reached } from "../look.js";

const [memoryMb, processes, cpus, diskMb] = [128, 40, 0.1, 16];

/** Each in a separate sandbox, since a limit may end the whole sandbox. */
export const limitTrials: readonly Trial[] = [
  limitTrial("resources.memory", { memoryMb }, (bench, sandbox) =>
    lookInside(sandbox, bench, { used: { try: "memory", mib: memoryMb * 2 } }).catch(refusedIfKilled),
  ),
  limitTrial("resources.processes", { processes }, (bench, sandbox) =>
    lookInside(sandbox, bench, { used: { try: "processes", count: processes } }),
  ),
  limitTrial("resources.disk", { diskMb }, (bench, sandbox) => {
    const attempts = { used: { try: "disk", folder: sandbox.home, mib: diskMb * 2 } };
    return lookInside(sandbox, bench, attempts, { role: "agent" });
  }),
];

/** The kernel kills what needs more memory than its limit. */
function refusedIfKilled(error: unknown): Reached {
  if (error instanceof Killed) return {};
  throw error;
}

export const cpuTrial: Trial = {
  shows: ["resources.cpu"],
  async run(bench) {
    const slow = await bench.open({ ...bench.network, resources: { cpus } });
    const coresOf = async (sandbox: Sandbox) => {
      const { cores } = await lookInside(sandbox, bench, { cores: { try: "cpu", ms: 300 } });
      return Number(cores ?? Number.NaN) / 100;
    };
    let [kept, free] = [0, 0];
    const isExceeded = () => kept >= cpus * 1.8;
    const isShown = () => free > 2 * Math.max(kept, cpus);
    // A busy host may give less than the limit to both, so the highest of several alternating measurements counts.
    for (let tries = 0; !isExceeded() && (tries < 2 || (tries < 9 && !isShown())); tries += 1) {
      kept = Math.max(kept, await coresOf(slow));
      free = Math.max(free, await coresOf(await bench.closed()));
      kept = Math.max(kept, await coresOf(slow));
    }
    const seen = `${free} cores were used without a limit, and ${kept} with one of ${cpus}`;
    expectThat(!isExceeded() && isShown(), seen);
    return { "resources.cpu": seen };
  },
};

function limitTrial(
  claim: Capability,
  limit: ResourceLimits,
  take: (bench: Bench, sandbox: Sandbox) => Promise<Reached>,
): Trial {
  return {
    shows: [claim],
    async run(bench) {
      const [limited, free] = await Promise.all([
        bench.open({ ...bench.network, resources: limit }),
        bench.closed().then((closed) => take(bench, closed)),
      ]);
      expectConclusive(
        (free.used ?? null) !== null,
        "without the limit it can't be used either, so nothing is proven",
      );
      let kept: Reached = {};
      let ending = "";
      try {
        kept = await take(bench, limited);
        // It can still start others.
        await lookInside(limited, bench, { kernel: { try: "kernel" } });
      } catch (error) {
        // gVisor ends together with the process that exceeded it: the limit holds, and the run fails.
        if (!(claim === "resources.memory" && error instanceof SandboxFailed)) throw error;
        ending = ", which ends the sandbox";
      }
      expectThat((kept.used ?? null) === null, `${kept.used} could be used despite the limit`);
      const [[name, value] = []] = Object.entries(limit);
      return {
        [claim]: `${free.used} could be used without a limit, and not with ${name} ${value}${ending}`,
      };
    },
  };
}
