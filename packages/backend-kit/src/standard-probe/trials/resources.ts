import { type Capability, type ResourceLimits, type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { expectThat } from "../../probe/trial.js";
import type { Bench, Trial } from "../bench.js";
import { lookInside, type Reached } from "../look.js";

const [memoryMb, processes, cpus, diskMb] = [128, 40, 0.1, 16];

/** Each in its own sandbox, since a limit may end the whole sandbox. */
export const limitTrials: readonly Trial[] = [
  limitTrial("resources.memory", { memoryMb }, (bench, sandbox) =>
    lookInside(sandbox, bench, { had: { try: "memory", mib: memoryMb * 2 } }),
  ),
  limitTrial("resources.processes", { processes }, (bench, sandbox) =>
    lookInside(sandbox, bench, { had: { try: "processes", count: processes } }),
  ),
  limitTrial("resources.disk", { diskMb }, (bench, sandbox) => {
    const attempts = { had: { try: "disk", folder: sandbox.home, mib: diskMb * 2 } };
    return lookInside(sandbox, bench, attempts, { role: "agent" });
  }),
];

export const cpuTrial: Trial = {
  shows: ["resources.cpu"],
  async run(bench) {
    const slow = await bench.open({ ...bench.network, resources: { cpus } });
    const workOf = async (sandbox: Sandbox) => {
      const { rounds } = await lookInside(sandbox, bench, { rounds: { try: "cpu", ms: 500 } });
      return Number(rounds ?? Number.NaN);
    };
    let [before, free, after] = [0, 0, 0];
    // A busy host gives the free one less than it has: it is measured again.
    for (let tries = 0; tries < 5 && !(free > 2 * Math.max(before, after)); tries += 1) {
      before = after || (await workOf(slow));
      free = await workOf(await bench.closed());
      after = await workOf(slow);
    }
    const share = Math.round((Math.max(before, after) / free) * 100);
    const seen = `with a limit of ${cpus} cores a loop ran ${share} % as often as without one`;
    expectThat(share < 50, seen);
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
      expectThat(
        (free.had ?? null) !== null,
        "without the limit it can't be used either, so nothing is proven",
      );
      let kept: Reached = {};
      let ending = "";
      try {
        kept = await take(bench, limited);
        // It still starts others.
        await lookInside(limited, bench, { kernel: { try: "kernel" } });
      } catch (error) {
        // gVisor ends with the process that needed too much: the limit holds, and the run fails.
        if (!(claim === "resources.memory" && error instanceof SandboxFailed)) throw error;
        ending = ", which ends the sandbox";
      }
      expectThat((kept.had ?? null) === null, `${kept.had} were had in spite of the limit`);
      const [[name, value] = []] = Object.entries(limit);
      return { [claim]: `${free.had} were had without a limit, and not with ${name} ${value}${ending}` };
    },
  };
}
