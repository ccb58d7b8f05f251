import type { Goal } from "../../goal.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startBareServer } from "../../subjects/server/bare-server.js";
import { toolCallback, usualTool } from "../../subjects/server/requests.js";
import { watchRun } from "../../subjects/server/runs.js";
import { eachAgent, installedAgents } from "./each-agent.js";

const calls = 10;
/** Each with a different input: some agents treat equal calls as a loop. */
const prompt = Array.from(
  { length: calls },
  (_, index) => `[[call crm_search_contacts_0 {"query":"ada","limit":${index + 1}}]]`,
).join(" ");

export const agentTools: Goal = {
  id: "A5",
  title:
    "G5 with real agents: tool-turn gap ÷ same agent with a bare MCP server that posts (Pi: posting itself)",
  goal: "≤ 1.10",
  needs: [installedAgents],
  run: (options) =>
    eachAgent(options, async ({ ambit, direct, request }, agent) => {
      await using platform = await startBareServer();
      const { url } = platform.caller;
      const body = request(prompt, {
        sessionId: `bench-${agent}`,
        toolCallback: toolCallback(`${url}/tools`),
        customTools: [usualTool(0)],
      });
      await direct.open("tools", url);
      const perCall = (done: number, toolsMs: number) => {
        if (done !== calls) throw new Error(`${done} of ${calls} calls went well`);
        return toolsMs / calls;
      };
      const measured = await interleaved(
        async () => {
          const { results, toolsMs } = await watchRun(ambit.caller, body);
          return perCall(results, toolsMs);
        },
        async () => {
          const { completed, toolsMs } = await direct.prompt("tools", prompt);
          return perCall(completed, toolsMs);
        },
        { pairs: options.pairs(12), warmUp: 2 },
      );
      return [
        {
          what: `${agent}: a tool call and the model's turn after it (${calls} in a warm turn)`,
          unit: "×",
          values: measured.ratios,
          limit: { atMost: 1.1 },
          note: mediansOf(measured, "ms"),
        },
      ];
    }),
};
