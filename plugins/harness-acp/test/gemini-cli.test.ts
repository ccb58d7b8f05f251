import { readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { ModelFailed, type PermissionAnswer, RunCancelled } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AcpHarness } from "../src/index.js";
import { gemini } from "../src/profiles/gemini.js";
import { ProcessSandbox } from "./support/process-sandbox.js";
import { eventsOf, failureOf, ofType, TestScope, textOf, turnOf } from "./support/runs.js";
import { startToolServer } from "./support/tool-server.js";

const limits = {
  cancelMs: 10_000,
  closeMs: 5_000,
  messageCharacters: 1_000_000,
  bufferedCharacters: 262_144,
};
const harness = new AcpHarness(gemini, { limits, folder: import.meta.dirname, env: {} });
const key = "key-for-the-scripted-model";

let sandbox: ProcessSandbox;
let model: ModelServer;
beforeEach(async () => {
  [sandbox, model] = await Promise.all([ProcessSandbox.open(), startModelServer({ expectedKey: key })]);
});
afterEach(async () => {
  await sandbox.close();
  await model.close();
});

function requestWith(changes: object = {}, credential = key): object {
  return {
    modelConnection: {
      provider: "google",
      endpoint: { baseUrl: model.url },
      credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: credential }],
    },
    ...changes,
  };
}

async function started(options: ConstructorParameters<typeof TestScope>[1] = {}) {
  const scope = new TestScope(sandbox, { request: requestWith(), ...options });
  const agent = await harness.start(scope);
  return { scope, agent };
}

describe("Gemini CLI, as a process", () => {
  it("answers with text, and tells its usage and model", async () => {
    const { agent, scope } = await started({ request: requestWith({ model: "google/gemini-2.5-pro" }) });
    const events = await eventsOf(agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(events.at(-2)).toEqual({ type: "usage", input: 1200, output: 50, total: 1250 });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    expect(model.requests[0]).toMatchObject({ model: "gemini-2.5-pro", status: 200 });
    expect(agent.model).toBe("gemini-2.5-pro");
    await scope.close();
    expect(await sandbox.spawned[0]?.exit).toMatchObject({ code: 0 });
  });

  it("calls a published tool, after asking for it by its own name and with its input", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await started({ servers: [tools.published] });
    const turn = turnOf({ prompt: '[[call lookup {"key":"k"}]]' });
    const events = await eventsOf(agent, turn);
    expect(tools.published.listed()).toBe(true);
    expect(tools.calls).toEqual([{ key: "k" }]);
    expect(turn.questions).toMatchObject([{ toolName: "lookup", server: "ambit", input: { key: "k" } }]);
    expect(ofType(events, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    expect(ofType(events, "tool_result")).toMatchObject([{ output: "value of k" }]);
    expect(textOf(events)).toContain("value of k");
    await scope.close();
  });

  it("asks before each of its own tools, also before those that it would run unasked", async () => {
    const { agent, scope } = await started({ request: requestWith({ agentsMd: "Be brief." }) });
    const turn = turnOf({
      prompt: '[[shell echo made > made]] [[call read_file {"file_path":"GEMINI.md"}]]',
    });
    const events = await eventsOf(agent, turn);
    const file = join(sandbox.workspace, "GEMINI.md");
    expect(turn.questions).toMatchObject([
      { toolName: "run_shell_command", input: { command: "echo made > made" } },
      { toolName: "read_file", input: { file_path: file }, readOnly: true },
    ]);
    expect(ofType(events, "tool_result")).toHaveLength(2);
    expect(textOf(events)).toContain("Be brief.");
    expect(await readFile(join(sandbox.workspace, "made"), "utf8")).toBe("made\n");
    await scope.close();
  });

  it("doesn't ask before its notes to itself, and offers the model no plan mode", async () => {
    const { agent, scope } = await started();
    const turn = turnOf({
      prompt: '[[call write_todos {"todos":[{"description":"look","status":"pending"}]}]]',
    });
    const events = await eventsOf(agent, turn);
    expect(ofType(events, "tool_result")).toHaveLength(1);
    expect(turn.questions).toEqual([]);
    expect(model.requests[0]?.toolNames).toContain("write_todos");
    expect(model.requests[0]?.toolNames).not.toContain("enter_plan_mode");
    await scope.close();
  });

  it("is denied a tool: it isn't executed, and the model hears of it", async () => {
    const { agent, scope } = await started();
    const events = await eventsOf(agent, turnOf({ prompt: "[[shell echo made > made]]", answer: "deny" }));
    expect(ofType(events, "tool_result")).toMatchObject([{ isError: true, denied: true }]);
    expect(textOf(events)).toContain("canceled by the user");
    await expect(readFile(join(sandbox.workspace, "made"))).rejects.toThrow();
    await scope.close();
  });

  it("pauses over a parked call, and takes another prompt", async () => {
    const { agent, scope } = await started();
    const events = await eventsOf(agent, turnOf({ prompt: "[[shell echo made > made]]", answer: "park" }));
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
    expect(ofType(events, "tool_call")).toHaveLength(1);
    expect(ofType(events, "tool_result")).toHaveLength(0);
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "hello" })))).toContain("Hello");
    await expect(readFile(join(sandbox.workspace, "made"))).rejects.toThrow();
    await scope.close();
  });

  it("is cancelled while it waits for permission", async () => {
    const { agent, scope } = await started();
    const abort = new AbortController();
    const turn = turnOf({
      prompt: "[[shell echo made > made]]",
      signal: abort.signal,
      answer: () => {
        abort.abort(new RunCancelled("cancelled"));
        return new Promise<PermissionAnswer>(() => {});
      },
    });
    const events = await eventsOf(agent, turn);
    expect(ofType(events, "tool_result")).toMatchObject([{ isError: true }]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "hello" })))).toContain("Hello");
    await scope.close();
  });

  it("is cancelled in mid-answer, and leaves its model's request", async () => {
    const { agent, scope } = await started();
    const abort = new AbortController();
    const events = [];
    for await (const event of agent.prompt(turnOf({ prompt: "[[slow 500 20]]", signal: abort.signal }))) {
      events.push(event);
      if (event.type === "message_delta") abort.abort(new RunCancelled("cancelled"));
    }
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    await model.waitFor((request) => request.aborted);
    await scope.close();
  });

  it.each([
    { status: 400, retryable: false },
    { status: 429, retryable: true },
    { status: 500, retryable: true },
    { status: 503, retryable: true },
  ])("reports its model's $status, at once", async ({ status, retryable }) => {
    const { agent, scope } = await started();
    const { error } = await failureOf(agent, turnOf({ prompt: `[[http ${status}]]` }));
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error).toMatchObject({ retryable });
    await scope.close();
  });

  it("reports a refused credential, which a second try wouldn't mend", async () => {
    const { agent, scope } = await started({ request: requestWith({}, "a-wrong-key") });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining("401") });
    expect(String(error)).not.toContain("a-wrong-key");
    await scope.close();
  });

  it("doesn't pass an empty answer off as a success", async () => {
    const silent = await startModelServer({ script: () => ({ kind: "message", usage: nothing }) });
    const request = requestWith({
      modelConnection: {
        endpoint: { baseUrl: silent.url },
        credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: key }],
      },
    });
    const { agent, scope } = await started({ request });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    await scope.close();
    await silent.close();
  });

  it("takes up an earlier conversation in a new process, without replaying it as events", async () => {
    const first = await started();
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    await backdateConversations();
    const second = await started({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("loaded");
    const events = await eventsOf(second.agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("the earlier answer");
    await second.scope.close();
  });

  it("says that a conversation is new when the CLI lost the earlier one", async () => {
    const first = await started();
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    await rm(chats(), { recursive: true });
    const second = await started({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("new");
    expect(textOf(await eventsOf(second.agent, turnOf()))).toBe("Hello from the scripted model.");
    await second.scope.close();
  });

  it("puts systemPrompt in place of its own, and appendSystemPrompt behind it", async () => {
    const request = requestWith({ systemPrompt: "SYSTEM ONLY", appendSystemPrompt: "AND THIS" });
    const { agent, scope } = await started({ request });
    await eventsOf(agent, turnOf());
    const body = JSON.stringify(model.requests[0]?.body);
    expect(body).toContain("SYSTEM ONLY");
    expect(body).toContain("AND THIS");
    expect(body).not.toContain("You are Gemini CLI");
    await scope.close();
  });

  it("runs several calls of one answer, each with its own result", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await started({ servers: [tools.published] });
    const events = await eventsOf(
      agent,
      turnOf({ prompt: '[[both call lookup {"key":"a"};;call lookup {"key":"b"}]]' }),
    );
    expect(tools.calls).toEqual([{ key: "a" }, { key: "b" }]);
    const called = ofType(events, "tool_call").map(({ id }) => id);
    expect(new Set(called).size).toBe(2);
    expect(ofType(events, "tool_result").map(({ id }) => id)).toEqual(called);
    await scope.close();
  });
});

function chats(): string {
  return join(sandbox.home, ".gemini", "tmp", "workspace", "chats");
}

/** The CLI names a conversation's file by the minute, and begins it anew when it loads one of the same minute. */
async function backdateConversations(): Promise<void> {
  for (const name of await readdir(chats())) {
    await rename(join(chats(), name), join(chats(), name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d/, "2026-01-01T00-00")));
  }
}

const nothing = { input: 0, cachedInput: 0, output: 0 };
