import type { Goal } from "../../goal.js";
import { interleaved, mediansOf } from "../../measure.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { startBareServer } from "../../subjects/server/bare-server.js";
import { demoRequest, toolCallback, usualTool } from "../../subjects/server/requests.js";
import { watchRun } from "../../subjects/server/runs.js";

const calls = 20;
const script = Array(calls).fill('call crm_search_contacts_0 {"query":"ada","limit":10}').join("\n");

/** From the agent's call to the tool's result, according to the events. */
export const toolTurn: Goal = {
  id: "G5",
  title: "tool-turn gap ÷ same agent calling a bare MCP server that posts",
  goal: "≤ 1.10",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using direct = startAcpDirect();
    await using platform = await startBareServer();
    const { url } = platform.caller;
    const body = demoRequest(script, {
      toolCallback: toolCallback(`${url}/tools`),
      customTools: [usualTool(0)],
    });
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
        const { completed, toolsMs } = await direct.run(script, url);
        return perCall(completed, toolsMs);
      },
      { pairs: pairs(20) },
    );
    return [
      {
        what: `a tool call, from the agent and back (${calls} in a turn)`,
        unit: "×",
        values: measured.ratios,
        limit: { atMost: 1.1 },
        note: mediansOf(measured, "ms"),
      },
    ];
  },
};
