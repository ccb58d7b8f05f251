// needs: jail
import type { RunResult } from "@ambit/core";
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking } from "../support/agents.js";
import { LiveRun } from "../support/live-run.js";
import * as matrix from "../support/matrix.js";
import { record } from "../support/record.js";
import { pythonTool } from "../support/tools.js";

const { agentRequest, testedAgents } = matrix;

let runner: Runner;
let model: ModelServer;
beforeAll(async () => {
  ({ runner, model } = await matrix.openMatrix());
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
});

/** What a run says of such an answer. */
type Said = "fails" | "`max_tokens`" | "warns" | "goes on";

/** Answers that end early, each time that the model is asked, with what the runs of each agent say. */
const answers: readonly {
  readonly row: string;
  readonly prompt: string;
  readonly said: Readonly<Record<string, Said>>;
}[] = [
  {
    row: "answer cut after a text",
    prompt: "[[say A first part.]] [[cut]]",
    said: { claude: "warns", codex: "fails", gemini: "warns", opencode: "fails", pi: "fails", qwen: "fails" },
  },
  {
    row: "answer cut within a call",
    prompt: '[[say A first part.]] [[cut call twice {"number":2}]]',
    said: { claude: "warns", codex: "fails", gemini: "warns", opencode: "fails", pi: "fails", qwen: "fails" },
  },
  {
    row: "answer at its limit, after a text",
    prompt: "[[say A first part.]] [[limit]]",
    said: {
      claude: "goes on",
      codex: "`max_tokens`",
      gemini: "`max_tokens`",
      opencode: "`max_tokens`",
      pi: "`max_tokens`",
      qwen: "goes on",
    },
  },
  {
    row: "answer at its limit, within a call",
    prompt: '[[say A first part.]] [[limit call twice {"number":2}]]',
    said: {
      claude: "fails",
      codex: "`max_tokens`",
      gemini: "`max_tokens`",
      opencode: "fails",
      pi: "fails",
      qwen: "fails",
    },
  },
];

function saidIn({ ok, stopReason, warnings, failure }: RunResult): Said | undefined {
  if (!ok) return failure?.code === "model_failed" ? "fails" : undefined;
  if (stopReason === "max_tokens") return "`max_tokens`";
  if (stopReason !== "end_turn") return undefined;
  return warnings?.some(
    ({ message }) =>
      message.includes("before it was finished") || message.includes("before they were finished"),
  )
    ? "warns"
    : "goes on";
}

describe.each(testedAgents)("$id, whose model's answers end early", { timeout: 120_000 }, (agent) => {
  it.each(answers)("$row", async ({ row, prompt, said }) => {
    const before = model.requests.length;
    const run = await LiveRun.begin(runner, {
      ...agentRequest(agent, model),
      ...asking(prompt),
      sessionId: `partial-${agent.id}`,
      customTools: [pythonTool("twice", "def main(number): return number * 2")],
      permissions: { default: "allow" },
      sandboxPermission: { network: "off", filesystem: "workspace", secrets: "hidden" },
    });
    const result = await run.result;
    expect(saidIn(result), JSON.stringify(result)).toBe(said[agent.id]);
    // Some repeat such a request without end, until they are ended.
    expect(model.requests.length - before).toBeLessThan(12);
    // The tool never ran with arguments that weren't complete.
    expect(run.of("tool_result").map(({ output }) => output)).not.toContain("4");
    expect(result.usage?.output).toBeGreaterThan(0);
    const isCut = row.includes("cut");
    if (result.failure !== undefined) expect(result.failure.retryable).toBe(isCut);
    if (!result.ok)
      expect(result.error).toContain(isCut ? "before it was finished" : "limit of their length");
    record(agent.id, row, said[agent.id]);
  });
});
