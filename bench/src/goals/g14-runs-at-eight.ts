import type { Goal } from "../goal.js";
import { interleaved, mediansOf } from "../measure.js";
import { startAcpDirect } from "../subjects/agents/acp-direct.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { demoRequest } from "../subjects/server/requests.js";
import { run } from "../subjects/server/runs.js";

const atOnce = 8;
const total = 24;
const script = "say hello";

/** Simultaneous runs: the runner isn't their bottleneck. */
export const runsAtEight: Goal = {
  id: "G14",
  title: "runs/s at 8 ÷ ACP direct",
  goal: "≥ 0.95",
  needs: [],
  async run({ pairs }) {
    await using direct = startAcpDirect();
    const measure = async (unconfined: "allow" | "prefer") => {
      await using ambit = await startAmbit({ unconfined });
      const body = demoRequest(script);
      return await interleaved(
        () => perSecond(() => run(ambit.caller, body)),
        () => perSecond(() => direct.run(script)),
        { pairs: Math.min(8, pairs(8)), warmUp: 1 },
      );
    };
    const plain = await measure("prefer");
    const confined = await measure("allow");
    return [
      {
        what: `cold runs of the demo agent, ${atOnce} at once, unconfined`,
        unit: "×",
        values: plain.ratios,
        limit: { atLeast: 0.95 },
        note: mediansOf(plain, "/s"),
      },
      {
        what: "the same, each in its jail",
        unit: "×",
        values: confined.ratios,
        note: mediansOf(confined, "/s"),
      },
    ];
  },
};

async function perSecond(step: () => Promise<unknown>): Promise<number> {
  let remaining = total;
  const begun = performance.now();
  const work = async () => {
    while (remaining > 0) {
      remaining -= 1;
      await step();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return (total / (performance.now() - begun)) * 1_000;
}
