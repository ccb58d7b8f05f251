// needs: jail
import type { ModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answering, asking } from "../support/agents.js";
import { cancelled } from "../support/cancelled.js";
import { LiveRun } from "../support/live-run.js";
import { agentRequest, openMatrix } from "../support/matrix.js";
import { type Platform, startPlatform } from "../support/platform.js";
import { callbackTool } from "../support/tools.js";

let runner: Runner;
let model: ModelServer;
let platform: Platform;
beforeAll(async () => {
  [{ runner, model }, platform] = await Promise.all([openMatrix(), startPlatform()]);
});
beforeEach(() => {
  platform.calls.length = 0;
});
afterAll(async () => {
  await runner.drain(0);
  await model.close();
  await platform[Symbol.asyncDispose]();
});

const inputSchema = {
  type: "object",
  required: ["to"],
  additionalProperties: false,
  properties: { to: { type: "string", minLength: 1 } },
};
const send = '[[call send {"to":"ann"}]]';
const arrived = { name: "ref__send", arguments: { to: "ann" } };

/** Without a permission of its own, so that the rules count. */
const ruledTool = callbackTool("send", { inputSchema, permission: undefined });

/** Pi's extension asks nothing about the run's tools: what is here is decided where their calls arrive. */
describe("the run's tools, called by Pi", { timeout: 60_000 }, () => {
  const boundaryFor = ({ endpoint }: Platform) => ({
    network: { allowlist: [new URL(endpoint).host] },
    filesystem: "workspace",
    secrets: "hidden",
  });
  const begin = (prompt: string, more: object, tools: readonly object[] = [ruledTool]) =>
    LiveRun.begin(runner, {
      ...agentRequest({ id: "pi", credential: "OPENAI_API_KEY", basePath: "/v1" }, model),
      sessionId: "permissions-pi",
      customTools: tools,
      toolCallback: { endpoint: platform.endpoint },
      sandboxPermission: boundaryFor(platform),
      ...asking(prompt),
      ...more,
    });
  const run = async (prompt: string, more: object, tools?: readonly object[]) => {
    const begun = await begin(prompt, more, tools);
    return { run: begun, result: await begun.result };
  };
  const ruled = (permission: string, pattern = "send") => ({
    permissions: { default: "allow", rules: [{ pattern, permission }] },
  });
  const asked = (permission: string) => [callbackTool("send", { inputSchema, permission })];

  it("run without a question where they are allowed", async () => {
    const { run: done, result } = await run(send, ruled("allow"));
    expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(done.of("interaction_request")).toEqual([]);
    expect(done.of("tool_call")).toMatchObject([{ name: "send", input: { to: "ann" } }]);
    expect(platform.calls).toEqual([arrived]);
  });

  it.each([
    { what: "a rule denies", more: ruled("deny"), tools: undefined },
    { what: "the tool denies", more: {}, tools: asked("deny") },
  ])("don't run where $what", async ({ more, tools }) => {
    const { run: done, result } = await run(send, more, tools);
    expect(result.ok).toBe(true);
    expect(done.of("tool_result")).toMatchObject([{ denied: true, isError: true }]);
    expect(platform.calls).toEqual([]);
  });

  it.each([{ approved: true }, { approved: false }])(
    "wait for the user where the permission is to ask, and run once if $approved",
    async ({ approved }) => {
      const { run: paused, result } = await run(send, {}, asked("ask"));
      expect(result.stopReason).toBe("paused");
      expect(paused.of("interaction_request")).toMatchObject([
        { payload: { toolName: "send", input: { to: "ann" } } },
      ]);
      expect(platform.calls).toEqual([]);
      const given = { tool: "send", input: { to: "ann" }, output: { approved } };
      const answered = await run("", answering(send, [given], send, paused), asked("ask"));
      expect(answered.result).toMatchObject({ ok: true, stopReason: "end_turn" });
      expect(platform.calls).toEqual(approved ? [arrived] : []);
    },
  );

  it("are left when the run is cancelled, and run again in the next one", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    await using silent = await startPlatform(() => promise);
    const hanging = { toolCallback: { endpoint: silent.endpoint }, sandboxPermission: boundaryFor(silent) };
    await cancelled(
      runner,
      await begin(send, { ...hanging, sessionId: "permissions-pi-left" }, asked("allow")),
      "tool_call",
    );
    resolve({});
    const { run: done } = await run(send, { sessionId: "permissions-pi-left" }, asked("allow"));
    expect(done.of("tool_result")).toMatchObject([{ isError: undefined }]);
    expect(platform.calls).toEqual([arrived]);
  });

  it("don't run with arguments that their schema refuses", async () => {
    const { run: done } = await run('[[call send {"to":"","more":1}]]', ruled("allow"));
    expect(done.of("tool_result")).toMatchObject([{ isError: true }]);
    expect(platform.calls).toEqual([]);
  });

  it("are found by no other name", async () => {
    for (const name of ["=Send", "=mcp__ambit__send", "=ref__send"]) {
      const { run: done } = await run(`[[call ${name} {"to":"ann"}]]`, ruled("allow"));
      expect(done.of("tool_result")).toMatchObject([{ isError: true }]);
    }
    expect(platform.calls).toEqual([]);
  });

  it("take the place of one of Pi's own with their name, which then doesn't run", async () => {
    const tools = [callbackTool("bash")];
    const sessionId = "permissions-pi-bash";
    const { run: done } = await run(
      '[[call =bash {"command":"touch made"}]]',
      { sessionId, ...ruled("deny", "shell") },
      tools,
    );
    expect(done.of("tool_result")).toHaveLength(1);
    expect(platform.calls).toMatchObject([{ name: "ref__bash", arguments: { command: "touch made" } }]);
    const read = await run('[[call =read {"path":"made"}]]', { sessionId, ...ruled("allow", "read") }, tools);
    expect(read.run.of("tool_result")).toMatchObject([{ isError: true }]);
  });
});
