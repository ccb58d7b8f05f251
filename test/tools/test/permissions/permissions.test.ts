import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { asking, ownToolsAllowed, startAgent, type TestAgent } from "../support/agents.js";
import type { LiveRun } from "../support/live-run.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { Stage } from "../support/stage.js";
import { callbackTool } from "../support/tools.js";

let stage: Stage;
let platform: Platform;
let agents: Readonly<Record<TestAgent["id"], TestAgent>>;
beforeAll(async () => {
  const [demo, gemini, codex] = await Promise.all([
    startAgent("demo"),
    startAgent("gemini"),
    startAgent("codex"),
  ]);
  agents = { demo, gemini, codex };
  [stage, platform] = await Promise.all([Stage.open(), startPlatform(() => "sent")]);
});
afterAll(async () => {
  await Promise.all([stage.close(), ...Object.values(agents).map((agent) => agent.close())]);
  await platform[Symbol.asyncDispose]();
});
beforeEach(() => {
  platform.calls.length = 0;
});

const given = { to: "ann" };

/** The outcome of the one call of a tool: the user was asked for `approved` and `refused` only. */
function outcomeOf(run: LiveRun, tool: string): string {
  const executed = platform.calls.filter(({ name }) => name === `ref__${tool}`).length;
  const denied = run.resultsOf(tool).filter((result) => result.denied === true).length;
  const answers = run
    .of("interaction_response")
    .filter(({ payload }) => JSON.stringify(payload).includes(`"${tool}"`));
  const asked = answers.length === 1;
  if (executed === 1 && denied === 0) return asked ? "approved" : "executed";
  if (executed === 0 && denied === 1) return asked ? "refused" : "denied";
  return `executed ${executed} times, denied ${denied} times, asked ${answers.length} times`;
}

/** Answers every question: yes, except for tools whose name says no. */
async function answered(run: LiveRun): Promise<LiveRun> {
  const seen = new Set<string>();
  const answer = () => {
    for (const { id, payload } of run.of("interaction_request")) {
      if (!seen.has(id)) run.run.answer(id, { approved: !JSON.stringify(payload).includes("unwanted") });
      seen.add(id);
    }
  };
  run.onEvent(answer);
  expect(await run.result).toMatchObject({ ok: true, stopReason: "end_turn" });
  return run;
}

const cases = [
  { tool: "own_allow", permission: "allow", expected: "executed", why: "above a rule that denies it" },
  { tool: "own_deny", permission: "deny", expected: "denied", why: "above a rule that allows it" },
  { tool: "own_ask", permission: "ask", expected: "approved", why: "the user says yes" },
  { tool: "own_ask_unwanted", permission: "ask", expected: "refused", why: "the user says no" },
  { tool: "ruled_twice", expected: "denied", why: "the strictest rule" },
  { tool: "ruled_allow", expected: "executed", why: "a rule" },
  { tool: "ruled_arguments", expected: "denied", why: "a rule on these arguments" },
  {
    tool: "ruled_others",
    readOnly: true,
    expected: "executed",
    why: "a rule on other arguments isn't its rule",
  },
  { tool: "reads", readOnly: true, expected: "executed", why: "allow_reads" },
  { tool: "writes", readOnly: false, expected: "approved", why: "allow_reads" },
  { tool: "says_nothing", expected: "approved", why: "allow_reads" },
];
const rules = [
  { pattern: "own_allow", permission: "deny" },
  { pattern: "own_deny", permission: "allow" },
  { pattern: "ruled_twice", permission: "allow" },
  { pattern: "ruled_twice", permission: "deny" },
  { pattern: "ruled_allow", permission: "allow" },
  { pattern: "ruled_arguments(an:*)", permission: "deny" },
  { pattern: "ruled_others(bo:*)", permission: "deny" },
];
const render = { kind: "component", component: "Mail" };
const customTools = cases.map(({ tool, permission, readOnly }) =>
  callbackTool(tool, { permission, readOnly, render }),
);

describe("published tools", () => {
  const everyCall = (verb: string) =>
    cases.map(({ tool }) => `${verb} ${tool} ${JSON.stringify(given)}`).join("\n");
  const throughModel = (agent: TestAgent) =>
    agent.prompt(...cases.map(({ tool }) => ({ tool, input: given })));
  it.each([
    ["the demo agent that asks first", () => agents.demo.request, () => everyCall("call!")],
    ["the demo agent that never asks", () => agents.demo.request, () => everyCall("call")],
    ["Gemini CLI, which asks first", () => agents.gemini.request, () => throughModel(agents.gemini)],
    ["Codex, which never asks", () => agents.codex.request, () => throughModel(agents.codex)],
  ])("are held to the ladder with %s", { timeout: 60_000 }, async (_who, request, prompt) => {
    const run = await stage.begin({
      ...request(),
      ...asking(prompt()),
      customTools,
      permissions: { rules: [...rules, ...ownToolsAllowed] },
      toolCallback: { endpoint: platform.endpoint },
      interactions: { waitMs: 60_000 },
    });
    await answered(run);
    const outcomes = cases.map(({ tool, why }) => ({ tool, why, outcome: outcomeOf(run, tool) }));
    expect(outcomes).toEqual(cases.map(({ tool, why, expected }) => ({ tool, why, outcome: expected })));
    // The `render` hint is on both events of every call, and the model gets the reason for a denial.
    const calls = [...run.of("tool_call"), ...run.of("tool_result")];
    expect(calls).toHaveLength(2 * cases.length);
    for (const event of calls) expect(event).toMatchObject({ render });
    for (const { output, denied } of run.of("tool_result")) {
      if (denied === true) expect(String(output)).toMatch(/denied|not approve|cancel|reject/i);
    }
  });

  it.each(["deny", "ask", "allow"] as const)("follow the default %s", async (byDefault) => {
    const run = await stage.begin({
      harness: "demo",
      ...asking("call reads {}\ncall writes {}"),
      permissions: { default: byDefault },
      toolCallback: { endpoint: platform.endpoint },
      interactions: { waitMs: 60_000 },
      customTools: customTools.filter(({ name }) => name === "reads" || name === "writes"),
    });
    await answered(run);
    const expected = { deny: "denied", ask: "approved", allow: "executed" }[byDefault];
    expect([outcomeOf(run, "reads"), outcomeOf(run, "writes")]).toEqual([expected, expected]);
  });
});

describe("the operator's ceiling", () => {
  let ceiled: Stage;
  afterEach(() => ceiled.close());

  it("overrides what a request allows and what its user could approve", async () => {
    ceiled = await Stage.open({ deny: ["own_allow", "own_ask"] });
    const run = await ceiled.run({
      harness: "demo",
      permissions: { default: "allow" },
      customTools,
      toolCallback: { endpoint: platform.endpoint },
      interactions: { waitMs: 60_000 },
      ...asking("call own_allow {}\ncall! own_allow {}\ncall own_ask {}"),
    });
    expect((await run.result).stopReason).toBe("end_turn");
    expect(run.of("interaction_request")).toEqual([]);
    expect(run.of("tool_result").map(({ denied }) => denied)).toEqual([true, true, true]);
    expect(platform.calls).toEqual([]);
  });

  it("applies to an agent that asks before its own tools, and refuses one that doesn't", {
    timeout: 60_000,
  }, async () => {
    ceiled = await Stage.open({ deny: ["run_shell_command(touch:*)"] });
    const permissions = { default: "allow" };
    const shell = "[[shell touch made]] [[shell ls]]";
    const run = await ceiled.run({ ...agents.gemini.request, ...asking(shell), permissions });
    expect(await run.result).toMatchObject({ ok: true, output: expect.not.stringContaining("made") });
    expect(run.of("tool_result").map(({ denied }) => denied === true)).toEqual([true, false]);
    const refused = ceiled.begin({ ...agents.codex.request, ...asking("say hi"), permissions });
    await expect(refused).rejects.toMatchObject({ code: "request_invalid", issues: [{ path: "harness" }] });
  });
});
