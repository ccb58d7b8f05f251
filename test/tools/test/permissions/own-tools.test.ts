// needs: jail
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking, startAgent, type TestAgent } from "../support/agents.js";
import { Stage } from "../support/stage.js";

let stage: Stage;
let agents: Readonly<Record<TestAgent["id"], TestAgent>>;
beforeAll(async () => {
  const [demo, gemini, codex] = await Promise.all([
    startAgent("demo"),
    startAgent("gemini"),
    startAgent("codex"),
  ]);
  agents = { demo, gemini, codex };
  stage = await Stage.open();
});
afterAll(() => Promise.all([stage.close(), ...Object.values(agents).map((agent) => agent.close())]));

describe("an agent's own tools", () => {
  const harmless = ["ls -la", "echo hi", "pwd", "cat x.txt"];
  const held = [
    { what: "the default deny", permissions: { default: "deny" }, deny: [], expected: "denied" },
    { what: "the default ask", permissions: { default: "ask" }, deny: [], expected: "asked" },
    { what: "nothing said: allow_reads", permissions: {}, deny: [], expected: "asked" },
    { what: "a rule for the class", permissions: denying("shell"), deny: [], expected: "denied" },
    { what: "a rule by Claude Code's name", permissions: denying("Bash"), deny: [], expected: "denied" },
    { what: "the operator's denial", permissions: { default: "allow" }, deny: ["Bash"], expected: "denied" },
    { what: "the default allow", permissions: { default: "allow" }, deny: [], expected: "executed" },
  ];
  const prompts = {
    demo: harmless.map((command) => `run ${command}`).join("\n"),
    gemini: harmless.map((command) => `[[shell ${command}]]`).join(" "),
  };

  function denying(pattern: string) {
    return { default: "allow", rules: [{ pattern, permission: "deny" }] };
  }

  // With one real agent: the runner decides the outcome, not the agent. The other agents are below.
  const withGemini = ["nothing said: allow_reads"];
  const cases = [
    ...held.map((one) => ({ id: "demo" as const, ...one })),
    ...held.filter(({ what }) => withGemini.includes(what)).map((one) => ({ id: "gemini" as const, ...one })),
  ];

  it.each(cases)(
    "$id: harmless commands are $expected by $what",
    { timeout: 60_000 },
    async ({ id, permissions, deny, expected }) => {
      const on = deny.length === 0 ? stage : await Stage.open({ deny });
      const run = await on.run({ ...agents[id].request, ...asking(prompts[id]), permissions });
      const { ok, stopReason, warnings } = await run.result;
      expect({ ok, warnings }).toEqual({ ok: true, warnings: undefined });
      expect(stopReason).toBe(expected === "asked" ? "paused" : "end_turn");
      const denied = run.of("tool_result").map((result) => result.denied === true);
      expect(denied).toEqual(expected === "asked" ? [] : harmless.map(() => expected === "denied"));
      if (on !== stage) await on.close();
    },
  );

  it.each(["Bash(rm:*)", "shell(rm:*)"])("%s finds the agent's shell", async (pattern) => {
    const prompt = "run rm -rf made\nrun mkdir made";
    const run = await stage.run({
      ...agents.demo.request,
      ...asking(prompt),
      permissions: denying(pattern),
    });
    expect(run.of("tool_result").map(({ denied }) => denied === true)).toEqual([true, false]);
  });

  it("a rule that matches none of them is a warning", async () => {
    const permissions = denying("run_shell(rm:*)");
    const run = await stage.run({ ...agents.demo.request, ...asking("say hi"), permissions });
    expect((await run.result).warnings).toEqual([
      {
        path: "permissions.rules[0].pattern",
        message: expect.stringContaining("demo's own tools are run, write, read, fetch"),
      },
    ]);
  });

  it.each([
    { what: "nothing said", permissions: undefined, path: "permissions.default" },
    { what: "the default deny", permissions: { default: "deny" }, path: "permissions.default" },
    { what: "the default ask", permissions: { default: "ask" }, path: "permissions.default" },
    { what: "a denial of its shell", permissions: denying("shell"), path: "permissions.rules[0].pattern" },
    { what: "Bash(rm:*)", permissions: denying("Bash(rm:*)"), path: "permissions.rules[0].pattern" },
  ])("codex, which doesn't ask, is refused by $what", async ({ permissions, path }) => {
    const refused = stage.begin({ ...agents.codex.request, ...asking("say hi"), permissions });
    await expect(refused).rejects.toMatchObject({ code: "request_invalid", issues: [{ path }] });
  });

  it("codex runs with its own tools allowed", { timeout: 60_000 }, async () => {
    const run = await stage.run({ ...agents.codex.request, ...asking("[[shell echo hi]]") });
    expect(await run.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(run.of("tool_call")).toMatchObject([{ name: "shell" }]);
    expect(run.of("tool_result").map(({ isError }) => isError)).toEqual([undefined]);
  });
});

describe("Gemini CLI's own tools", () => {
  it("obey rules with its own names and with common ones, since it asks before every call", {
    timeout: 60_000,
  }, async () => {
    const run = await stage.run({
      ...agents.gemini.request,
      ...asking(
        '[[shell touch denied]] [[shell mkdir allowed]] [[call write_file {"file_path":"/workspace/w","content":"x"}]] [[shell rm -r allowed]] [[shell rmdir allowed]] [[shell ls]]',
      ),
      permissions: {
        default: "allow",
        rules: [
          { pattern: "run_shell_command(touch:*)", permission: "deny" },
          { pattern: "write_file", permission: "deny" },
          { pattern: "Bash(rm:*)", permission: "deny" },
          { pattern: "shell(rmdir:*)", permission: "deny" },
        ],
      },
    });
    expect(await run.result).toMatchObject({ ok: true, output: expect.stringMatching(/Output: allowed\s/) });
    const denied = run.of("tool_result").map((result) => result.denied === true);
    expect(denied).toEqual([true, false, true, true, true, false]);
  });
});
