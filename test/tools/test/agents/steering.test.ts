// needs: jail
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking } from "../support/agents.js";
import { LiveRun } from "../support/live-run.js";
import { agentRequest, agentsOr, openMatrix } from "../support/matrix.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { callbackTool } from "../support/tools.js";

let runner: Runner;
let model: ModelServer;
let platform: Platform;
/** The first call is answered once the message was sent. */
const sent = Promise.withResolvers<void>();
beforeAll(async () => {
  const answer = async ({ arguments: input }: { readonly arguments: Record<string, unknown> }) => {
    if (input.to === "ann") await sent.promise;
    return input;
  };
  [{ runner, model }, platform] = await Promise.all([openMatrix(), startPlatform(answer)]);
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
  await platform[Symbol.asyncDispose]();
});

describe.each(agentsOr("codex").filter(({ id }) => ["codex", "claude"].includes(id)))(
  "$id, in the middle of its turn",
  { timeout: 120_000 },
  (agent) => {
    it("takes a message of its user, and does what it says", async () => {
      const inputSchema = { type: "object", properties: { to: { type: "string" } } };
      const run = await LiveRun.begin(runner, {
        ...agentRequest(agent, model),
        sessionId: `steered-${agent.id}`,
        permissions: { default: "allow" },
        customTools: [callbackTool("send", { inputSchema })],
        toolCallback: { endpoint: platform.endpoint },
        ...asking('[[call send {"to":"ann"}]]'),
      });
      await run.until("tool_call");
      await expect.poll(() => platform.calls).toHaveLength(1);
      await run.run.steer([{ type: "text", text: '[[call send {"to":"bob"}]]' }]);
      sent.resolve();
      expect(await run.result).toMatchObject({ ok: true, stopReason: "end_turn" });
      expect(platform.calls.map(({ arguments: input }) => input)).toEqual([{ to: "ann" }, { to: "bob" }]);
    });
  },
);
