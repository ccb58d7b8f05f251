// needs: jail
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking, ownToolsAllowed } from "../support/agents.js";
import { LiveRun } from "../support/live-run.js";
import { agentRequest, agentsOr, openMatrix } from "../support/matrix.js";
import { pythonTool } from "../support/tools.js";

let runner: Runner;
let model: ModelServer;
beforeAll(async () => {
  ({ runner, model } = await openMatrix());
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
});

describe.each(agentsOr("codex"))("$id under a budget that asks", { timeout: 60_000 }, (agent) => {
  const prompt = '[[call twice {"number":1}]] [[call twice {"number":2}]] [[say Done.]]';
  const begin = (more: object) =>
    LiveRun.begin(runner, {
      ...agentRequest(agent, model),
      ...asking(prompt),
      sessionId: `budget-${agent.id}`,
      customTools: [pythonTool("twice", "def main(number): return number * 2")],
      permissions: { default: "allow", rules: ownToolsAllowed },
      ...more,
    });
  const questionOf = (run: LiveRun) => run.of("interaction_request").at(-1);

  it("pauses, and continues with each approval in the next request", async () => {
    const budget = { session: { requests: 1 }, onExceeded: "ask" };
    let messages: object[] = [{ role: "user", content: prompt }];
    // Agents send different numbers of requests in a turn, for example for titles.
    for (let round = 1; ; round += 1) {
      const run = await begin({ budget, messages });
      const result = await run.result;
      expect(result.ok).toBe(true);
      const answered = run.of("interaction_response").map(({ payload }) => payload);
      expect(answered).toEqual(round === 1 ? [] : [{ toolName: "budget", approved: true }]);
      if (result.stopReason === "end_turn" && round > 1) break;
      expect(result.stopReason).toBe("paused");
      expect(round).toBeLessThan(8);
      const question = questionOf(run);
      expect(question).toMatchObject({ kind: "user_approval", payload: { toolName: "budget" } });
      const answer = { type: "tool_result", toolCallId: question?.id, output: { approved: true } };
      messages = [...messages, { role: "tool", content: [answer] }];
    }
  });

  it("ends with a denial in the next request", async () => {
    const more = { budget: { requests: 1, onExceeded: "ask" }, sessionId: `budget-${agent.id}` };
    const first = await begin(more);
    expect(await first.result).toMatchObject({ stopReason: "paused" });
    const answer = { type: "tool_result", toolCallId: questionOf(first)?.id, output: { approved: false } };
    const messages = [
      { role: "user", content: prompt },
      { role: "tool", content: [answer] },
      { role: "user", content: prompt },
    ];
    const second = await begin({ ...more, messages });
    expect(await second.result).toMatchObject({ ok: false, failure: { code: "budget_exceeded" } });
  });

  it("asks while it runs, and continues with each approval", async () => {
    const run = await begin({
      budget: { requests: 1, session: { requests: 100 }, onExceeded: "ask" },
      interactions: { waitMs: 20_000 },
    });
    const answered = new Set<string>();
    const answering = (async () => {
      for (let count = 1; ; count += 1) {
        const question = (await run.until("interaction_request", count)).at(-1);
        if (question === undefined || answered.has(question.id)) continue;
        answered.add(question.id);
        runner.answer(run.id, question.id, { approved: true });
      }
    })().catch(() => undefined);
    const result = await run.result;
    await answering;
    expect(result).toMatchObject({
      ok: true,
      stopReason: "end_turn",
      output: expect.stringContaining("Done."),
    });
    expect(run.of("tool_result").map(({ output }) => output)).toEqual(["2", "4"]);
    expect(answered.size).toBeGreaterThanOrEqual(2);
    // The agent may send one more request to its model after the turn.
    expect(run.of("interaction_response").length).toBeGreaterThanOrEqual(2);
  });
});
