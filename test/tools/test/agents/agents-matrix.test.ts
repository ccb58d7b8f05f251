// needs: jail
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answering, asking, modelKey, ownToolsAllowed } from "../support/agents.js";
import { cancelled } from "../support/cancelled.js";
import { LiveRun } from "../support/live-run.js";
import * as matrix from "../support/matrix.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { record, recordFeature } from "../support/record.js";
import { callbackTool, clientTool, pythonTool } from "../support/tools.js";

const { agentRequest, expectOrdered, price, testedAgents, testsWhole } = matrix;

let runner: Runner;
let model: ModelServer;
let platform: Platform;
beforeAll(async () => {
  [{ runner, model }, platform] = await Promise.all([matrix.openMatrix(), startPlatform()]);
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
  await platform[Symbol.asyncDispose]();
});

describe.each(testedAgents)(
  "$id, confined, without a network, its key outside",
  { timeout: testsWhole ? 240_000 : 60_000 },
  (agent) => {
    const neverAsks = agent.neverAsks === true;
    const tools = [pythonTool("twice", "def main(number): return number * 2"), clientTool("pick")];
    const held = [
      { pattern: "shell(rm:*)", permission: "deny" },
      { pattern: "shell(mkdir:*)", permission: "ask" },
    ];
    const confined = () => ({
      ...agentRequest(agent, model),
      sessionId: `matrix-${agent.id}`,
      customTools: tools,
      agentsMd: "Be kind.",
      skills: [{ name: "greet", description: "How to greet politely.", body: "Say hello." }],
      harnessFiles: [{ path: "given.txt", content: "From the request." }],
      appendSystemPrompt: "Words behind the agent's own.",
      permissions: { default: "allow", rules: neverAsks ? ownToolsAllowed : held },
      sandboxPermission: {
        network: "off",
        filesystem: "workspace",
        secrets: "hidden",
      },
    });
    const begin = (more: object) => LiveRun.begin(runner, { ...confined(), ...more });
    const run = async (prompt: string, more: object = {}) => {
      const begun = await begin({ ...asking(prompt), ...more });
      return { run: begun, result: await begun.result };
    };
    const asked = () =>
      model.requests.filter(({ operation, toolNames }) => operation === "generate" && toolNames.length > 0);

    it("responds with text and calls a code tool, as in its example", async () => {
      const { customTools: _tools, permissions, ...example } = await matrix.exampleRequest(agent, model);
      const own = confined();
      expect(example.sandboxPermission).toEqual(own.sandboxPermission);
      expect(permissions.default).toBe("allow");
      const before = asked().length;
      const done = await begin(example);
      const result = await done.result;
      expect(result).toMatchObject({
        ok: true,
        stopReason: "end_turn",
        receipt: { confinement: "confined" },
      });
      expect(done.of("tool_call")[0]).toMatchObject({ name: "twice", input: { number: 21 } });
      expect(done.of("tool_result")[0]).toMatchObject({ output: "42" });
      expect(result.output).toContain("Twice 21 is 42.");
      expect(result.receipt?.visibleCredentials).toEqual([]);
      // Counted by the scripted model, also for agents that report nothing.
      const { input = 0, output = 0, cost } = result.usage ?? {};
      expect({ input: input % 1_200, output: output % 50, isCounted: input > 0 }).toEqual({
        input: 0,
        output: 0,
        isCounted: true,
      });
      expect(cost).toBeCloseTo((input * price.input + output * price.output) / 1_000_000);
      expect(asked().at(-1)?.credentials).toEqual([modelKey]);
      const body = JSON.stringify(asked().at(-1)?.body);
      expect(body).toContain("Be kind.");
      expect(body).toContain("How to greet politely.");
      expect(body).toContain("Words behind the agent's own.");
      for (const feature of ["agentsMd", "skills", "appendSystemPrompt"]) recordFeature(agent.id, feature);
      const [first] = asked().slice(before);
      expect(first?.toolNames).toContainEqual(expect.stringMatching(/twice$/));
      recordFeature(agent.id, "tools without a search");
      if (example.model !== undefined) expect(first?.model).toBe(example.model);
      recordFeature(agent.id, "model");
      // Connections through the proxy only: without a network no other reaches anything, and none is recorded.
      const refused = done.of("boundary_decision").filter(({ allowed }) => !allowed);
      const hosts = [...new Set(refused.map(({ target }) => target))];
      expect(hosts).toEqual(hosts.length === 0 ? [] : matrix.askedFor[agent.id]);
      recordFeature(agent.id, "no other host asked for", hosts.length === 0 ? "yes" : "no: npm's registry");
      record(agent.id, "text");
      record(agent.id, "code tool");
      record(agent.id, "network off, key hidden");
      record(agent.id, "usage and cost");
    });

    it("continues in a warm session", async () => {
      const text = { type: "text", text: "[[say second]]" };
      const image = { type: "image", uri: `data:image/png;base64,${matrix.pixel}` };
      const { result } = await run("", { messages: [{ role: "user", content: [text, image] }] });
      // Claude Code adds an image's path as text, which the scripted model takes for the user's.
      expect(result).toMatchObject({ ok: true, output: expect.stringMatching(/second|Hello/) });
      const body = JSON.stringify(asked().at(-1)?.body);
      expect(body).toContain("Let me see.");
      expect(body).toMatch(
        new RegExp(`"(data|url|image_url)":"(data:image/png;base64,)?${matrix.pixel.replace(/\+/g, "\\+")}"`),
      );
      recordFeature(agent.id, "images");
      record(agent.id, "second turn, warm");
    });

    const isHeld = () =>
      it("obeys the permissions for its own tools", async () => {
        const { run: done } = await run("[[shell touch allowed]] [[shell ls]]");
        const listed = expect.stringMatching(/allowed[\s\S]*given\.txt/);
        expect(done.of("tool_result").at(-1)).toMatchObject({ output: listed });
        recordFeature(agent.id, "harnessFiles");
        const denied = await run("[[shell rm allowed]]");
        expect(denied.run.of("tool_result")).toMatchObject([{ denied: true }]);
        const first = "[[shell mkdir made]]";
        const paused = await run(first);
        expect(paused.result.stopReason).toBe("paused");
        const [question] = paused.run.of("interaction_request");
        const { toolName, input } = Object(question?.payload);
        const output = { approved: true };
        const { messages } = answering(first, [{ tool: toolName, input, output }], first, paused.run);
        const approved = await run("", { messages });
        expect(approved.result).toMatchObject({ ok: true, stopReason: "end_turn" });
        expect(approved.run.of("tool_result").map(({ denied }) => denied)).toEqual([undefined]);
        for (const row of ["own tool allowed", "own tool denied", "own tool asked"]) record(agent.id, row);
      });

    const isRefused = () =>
      it("is refused if one of its own tools would need a permission", async () => {
        for (const permissions of [
          { default: "deny" },
          { default: "ask" },
          { default: "allow", rules: held },
        ]) {
          const refused = begin({ ...asking("hello"), permissions });
          await expect(refused).rejects.toMatchObject({ code: "request_invalid" });
        }
        const { run: done } = await run("[[shell touch allowed]] [[shell ls]]");
        const listed = expect.stringMatching(/allowed[\s\S]*given\.txt/);
        expect(done.of("tool_result").at(-1)).toMatchObject({ output: listed });
        recordFeature(agent.id, "harnessFiles");
        record(agent.id, "own tool allowed");
        for (const row of ["own tool denied", "own tool asked"]) record(agent.id, row, "refused");
      });

    if (neverAsks) isRefused();
    else isHeld();

    const search = matrix.searches[agent.id];
    const isRefusedSearch = () =>
      it("continues without its provider's search, and reports what the boundary refused, with the fix", async () => {
        const { run: done, result } = await run(`[[call =${search} {"query":"news"}]]`);
        expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
        const message = expect.stringMatching(
          /model-route · network\.deny: .* the tool .*: deny .*allowProviderTools/,
        );
        expect(result.warnings).toEqual([{ path: "sandboxPermission.network", message }]);
        expect(done.of("boundary_decision")).toContainEqual(expect.objectContaining({ allowed: false }));
        recordFeature(agent.id, "provider's search");
      });
    if (search === undefined) recordFeature(agent.id, "provider's search", "–");
    else isRefusedSearch();

    it("pauses for a client tool, and continues with the user's answer, each time in the same session", async () => {
      for (const output of ["the first", "the second"]) {
        const prompt = '[[say Which one?]] [[call pick {"of":"two"}]]';
        const { run: paused, result } = await run(prompt);
        expect(result.stopReason).toBe("paused");
        expect(paused.of("interaction_request")).toMatchObject([
          { payload: { toolName: "pick", input: { of: "two" } } },
        ]);
        expectOrdered(paused.events);
        const given = { tool: "pick", input: { of: "two" }, output };
        const { messages } = answering(prompt, [given], prompt, paused);
        const answered = await run("", { messages });
        expect(answered.result).toMatchObject({ ok: true, stopReason: "end_turn" });
        // Some agents put words of their own around a result.
        expect(answered.result.output).toMatch(new RegExp(`FINAL: [\\s\\S]*${output}`));
        expect(answered.run.of("tool_result")).toMatchObject([{ output }]);
        expectOrdered(answered.run.events);
      }
      record(agent.id, "client tool");
    });

    // The agent ends its turn itself and serves the next one.
    it("is cancelled during a response", async () => {
      await cancelled(runner, await begin(asking("[[slow 500 20]]")), "message_delta");
      record(agent.id, "cancel");
    });

    const isCancelledMidway = () =>
      it("is cancelled during a tool call, and with a question open", async () => {
        await cancelled(runner, await begin(asking("[[shell sleep 100]]")), "tool_call");
        record(agent.id, "cancel during a tool call");
        if (neverAsks) return record(agent.id, "cancel, with a question open", "–");
        const waiting = { ...asking("[[shell mkdir other]]"), interactions: { waitMs: 60_000 } };
        await cancelled(runner, await begin(waiting), "interaction_request");
        record(agent.id, "cancel, with a question open");
      });
    if (testsWhole || agent.id === "pi") isCancelledMidway();

    it("reports a model's failure, with its status and whether it is retryable", async () => {
      for (const [status, retryable] of testsWhole ? matrix.statuses : matrix.statuses.slice(-1)) {
        const before = model.requests.length;
        const prompt = `[[http ${status}]]`;
        const { run: done, result } = await run(prompt);
        // Not those for the list of models, which an agent may send at any time.
        const tries = model.requests
          .slice(before)
          .filter(({ lastUserText }) => lastUserText.includes(prompt)).length;
        expect(tries).toBeLessThanOrEqual(4);
        if (status === 529) recordFeature(agent.id, "requests where a model answers 529", tries);
        const failure = { code: "model_failed", retryable, upstreamStatus: status };
        expect(result).toMatchObject({ ok: false, failure });
        expect(result.error).toContain(`The model answered with ${status}`);
        expect(done.events.at(-1)).toEqual({ type: "done" });
      }
      record(agent.id, "upstream errors");
      if (!testsWhole) return;
      const { result } = await run("[[drop]]");
      // One agent asks its model to continue where it stopped.
      const resumes = agent.id === "qwen";
      const failed = { ok: false, failure: { code: "model_failed", retryable: true } };
      expect(result).toMatchObject(resumes ? { ok: true, stopReason: "end_turn" } : failed);
      record(agent.id, "interrupted response", resumes ? "resumed" : "yes");
    });

    it("resumes a conversation in a new session, and calls a callback tool on the allowlist", async () => {
      platform.calls.length = 0;
      const { run: done, result } = await run("", {
        sessionId: `matrix-${agent.id}-cold`,
        systemPrompt: "Words in place of the agent's own.",
        customTools: [callbackTool("send")],
        toolCallback: { endpoint: platform.endpoint },
        sandboxPermission: {
          network: { allowlist: [new URL(platform.endpoint).host] },
          filesystem: "workspace",
        },
        messages: [
          { role: "user", content: "my name is Ann" },
          { role: "assistant", content: "Hello, Ann." },
          { role: "user", content: '[[call send {"to":"ann"}]]' },
        ],
      });
      expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
      expect(platform.calls).toEqual([{ name: "ref__send", arguments: { to: "ann" } }]);
      expect(done.of("tool_call")).toMatchObject([{ name: "send", input: { to: "ann" } }]);
      expect(JSON.stringify(asked().at(-1)?.body)).toContain("my name is Ann");
      expect(JSON.stringify(asked().at(-1)?.body)).toContain("Words in place of the agent's own.");
      recordFeature(agent.id, "systemPrompt");
      record(agent.id, "callback tool");
      record(agent.id, "second turn, cold");
    });
  },
);
