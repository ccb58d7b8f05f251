import { tryInside } from "../../inside/look.js";
import { expectThat } from "../../probe/trial.js";
import type { StandardTrial } from "../bench.js";
import { excessIn } from "../status.js";

/** What the kernel says of a tool's process and of the agent's: with privileges, no namespace holds. */
export const privilegesTrial: StandardTrial = {
  shows: ["process.contained"],
  async run(bench) {
    const sandbox = await bench.closed();
    const { isGvisor } = await bench.kernel();
    const bounding = bench.probe.bounding ?? [];
    const attempts = { status: { try: "own", file: "status" } } as const;
    const look = (role: "tool" | "agent") => tryInside(sandbox, bench, attempts, { role });
    const [tool, agent] = await Promise.all([look("tool"), look("agent")]);
    for (const [whose, { status }] of [
      ["a tool's", tool],
      ["an agent's", agent],
    ] as const) {
      const excess = excessIn(status ?? "", { bounding }, isGvisor);
      expectThat(excess.length === 0, `of ${whose} process: ${excess.join("; ")}`);
    }
    return {
      "process.contained":
        "the kernel reports no capability of a tool's or an agent's process, no way to gain one, and a filter of its system calls",
    };
  },
};
