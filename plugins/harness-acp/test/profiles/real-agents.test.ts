import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claude } from "../../src/profiles/claude.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import type { Profile } from "../../src/profiles/profile.js";
import { qwen } from "../../src/profiles/qwen.js";
import { AgentStage, isInstalled, isTested } from "../support/agent-stage.js";
import { eventsOf, ofType, textOf, turnOf } from "../support/runs.js";
import { startToolServer } from "../support/tool-server.js";

/** One pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const profiles = [claude, opencode, pi, qwen];
const tested = profiles.filter(({ id }) => isTested(id, "pi"));

it("the agents to be tested are installed", () => {
  expect(tested.filter((profile) => !isInstalled(profile)).map(({ id }) => id)).toEqual([]);
});

describe.each(tested.map((profile) => ({ id: profile.id, profile })))(
  "$id, as a process",
  { timeout: 60_000 },
  ({ profile }) => {
    let stage: AgentStage;
    beforeAll(async () => {
      stage = await AgentStage.open(profile);
    });
    afterAll(() => stage.close());

    it("runs what is allowed, and calls published tools by their names", async () => {
      await using tools = await startToolServer();
      const { agent, scope } = await stage.start({
        servers: [tools.published],
        request: stage.requestWith({ appendSystemPrompt: "APPENDED", systemPrompt: "REPLACED" }),
      });
      const ran = await eventsOf(agent, turnOf({ prompt: "[[shell echo out]]" }));
      expect(ofType(ran, "tool_call")).toMatchObject([{ input: { command: "echo out" } }]);
      expect(ofType(ran, "tool_result")).toMatchObject([{ output: expect.stringMatching(/^out\s*$/) }]);
      // Without the requests for a title.
      const [first] = stage.model.requests.filter(
        ({ lastUserText, toolNames }) => lastUserText.includes("echo out") && toolNames.length > 0,
      );
      expect(JSON.stringify(first?.body)).toContain("APPENDED");
      expect(JSON.stringify(first?.body)).toContain("REPLACED");

      const called = await eventsOf(agent, turnOf({ prompt: '[[call lookup {"key":"k"}]]' }));
      expect(tools.calls).toEqual([{ key: "k" }]);
      expect(ofType(called, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
      expect(ofType(called, "tool_result")).toMatchObject([{ output: "value of k" }]);

      const image = { type: "image", data: pixel, mimeType: "image/png" };
      await eventsOf(agent, { ...turnOf(), prompt: [{ type: "text", text: "see" }, image] });
      expect(stage.model.requests.some(({ body }) => JSON.stringify(body).includes(pixel))).toBe(true);
      await scope.close();
    });

    it("resumes its conversation in a new process", async () => {
      const { agent, scope } = await stage.start();
      expect(textOf(await eventsOf(agent, turnOf({ prompt: "[[say the earlier answer]]" })))).toBe(
        "the earlier answer",
      );
      await agent.close();
      await scope.close();

      const second = await stage.start({ resume: agent.conversation });
      expect(second.agent.history).toBe("loaded");
      expect(textOf(await eventsOf(second.agent, turnOf()))).toBe("Hello from the scripted model.");
      const asked = stage.model.requests.filter(({ lastUserText }) => lastUserText === "hello").at(-1);
      expect(JSON.stringify(asked?.body)).toContain("the earlier answer");
      await second.scope.close();
    });
  },
);

/** Ambit doesn't offer Claude Code's subagents: with them, its questions would be these. */
const withSubagents: Profile = {
  ...claude,
  prepare: (preparation) => {
    const prepared = claude.prepare(preparation);
    const { options } = Object(prepared.sessionMeta).claudeCode;
    options.tools = [...options.tools, "Agent"];
    return prepared;
  },
};

for (const profile of tested.filter(({ id }) => id === "claude"))
  it.each(["allow", "deny"] as const)(
    "a subagent of Claude Code asks for its command, and the end of one that gets %s reaches the turn",
    { timeout: 60_000 },
    async (answer) => {
      const stage = await AgentStage.open(profile);
      try {
        const start = async (of: Profile) => {
          const { agent, scope } = await stage.start({}, of);
          const call = { description: "d", prompt: "[[shell touch made]]", subagent_type: "general-purpose" };
          const turn = turnOf({
            prompt: `[[call Agent ${JSON.stringify(call)}]]`,
            answer: async ({ toolName }) => (toolName === "Bash" ? answer : "allow"),
          });
          const events = await eventsOf(agent, turn);
          await scope.close();
          const calls = ofType(events, "tool_call").map(({ id, parentToolCallId }) => [id, parentToolCallId]);
          return { questions: turn.questions, results: ofType(events, "tool_result"), calls, events };
        };
        const isOffered = () => stage.model.requests.some(({ toolNames }) => toolNames.includes("Agent"));
        await start(claude);
        expect(isOffered()).toBe(false);

        const { questions, results, calls, events } = await start(withSubagents);
        expect(isOffered()).toBe(true);
        expect(questions).toMatchObject([
          { toolName: "Agent" },
          { toolName: "Bash", toolClass: "shell", input: { command: "touch made" } },
        ]);
        const [asked, command] = questions.map(({ toolCallId }) => toolCallId);
        expect(calls).toEqual([
          [asked, undefined],
          [command, asked],
        ]);
        // What the subagent says, and then the agent.
        expect(ofType(events, "message_start").map(({ parentToolCallId }) => parentToolCallId)).toEqual([
          asked,
          undefined,
        ]);
        expect(results.map(({ id, isError = false }) => ({ id, isError }))).toEqual([
          { id: command, isError: answer === "deny" },
          { id: asked, isError: false },
        ]);
        expect(existsSync(join(stage.sandbox.workspace, "made"))).toBe(answer === "allow");
      } finally {
        await stage.close();
      }
    },
  );
