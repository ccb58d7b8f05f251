import type { Goal } from "../../goal.js";
import { interleaved, mediansOf } from "../../measure.js";
import { watchRun } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

const chunks = 3_000;
const prompt = `[[slow ${chunks} 0]]`;

export const agentChunks: Goal = {
  id: "A11",
  title: "G11 with real agents: a model's chunks per second through the agent ÷ ACP direct",
  goal: "≥ 0.97",
  needs: [installedAgents],
  run: (options) =>
    eachAgent(options, async ({ ambit, direct, request }, agent) => {
      await direct.open("talks");
      const body = request(prompt, { sessionId: `bench-${agent}` });
      const measured = await interleaved(
        async () => (chunks / (await watchRun(ambit.caller, body)).sinceFirstDeltaMs) * 1_000,
        async () => (chunks / (await direct.prompt("talks", prompt)).sinceFirstMs) * 1_000,
        { pairs: options.pairs(8), warmUp: 1 },
      );
      return [
        {
          what: `${agent}: chunks/s of its model (${chunks.toLocaleString("en")} in a warm turn)`,
          unit: "×",
          values: measured.ratios,
          limit: { atLeast: 0.97 },
          note: mediansOf(measured, "/s"),
        },
      ];
    }),
};
