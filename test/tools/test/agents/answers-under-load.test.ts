// needs: jail
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answering, asking, ownToolsAllowed } from "../support/agents.js";
import { LiveRun } from "../support/live-run.js";
import { agentRequest, expectOrdered, openMatrix, testedAgents } from "../support/matrix.js";
import { clientTool } from "../support/tools.js";

const sessions = process.env.AMBIT_SOAK === "1" ? 6 : 2;

let runner: Runner;
let model: ModelServer;
beforeAll(async () => {
  ({ runner, model } = await openMatrix());
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
});

/** A call may reach the runner before the agent's report of it does, on another connection. */
it.each(testedAgents)(
  "$id: answers given in warm sessions reach their calls while several run at once",
  { timeout: 240_000 },
  async (agent) => {
    const prompt = '[[say Which one?]] [[call pick {"of":"two"}]]';
    const session = async (index: number) => {
      const request = {
        ...agentRequest(agent, model),
        sessionId: `load-${agent.id}-${index}`,
        customTools: [clientTool("pick")],
        permissions: { default: "allow", ...(agent.neverAsks ? { rules: ownToolsAllowed } : {}) },
        sandboxPermission: { network: "off", filesystem: "workspace", secrets: "hidden" },
      };
      for (const output of ["first", "second"]) {
        const paused = await LiveRun.begin(runner, { ...request, ...asking(prompt) });
        expect(await paused.result).toMatchObject({ stopReason: "paused" });
        expectOrdered(paused.events);
        const given = { tool: "pick", input: { of: "two" }, output };
        const answered = await LiveRun.begin(runner, {
          ...request,
          ...answering(prompt, [given], prompt, paused),
        });
        const result = await answered.result;
        expect(result).toMatchObject({ ok: true, receipt: { session: { history: "warm" } } });
        expect(answered.of("tool_call")).toHaveLength(1);
        expect(answered.of("tool_result")).toMatchObject([{ output }]);
        expectOrdered(answered.events);
      }
    };
    await Promise.all(Array.from({ length: sessions }, (_, index) => session(index)));
  },
);
