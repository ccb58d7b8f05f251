import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GeminiStage } from "../support/gemini-stage.js";
import { eventsOf, ofType, textOf, turnOf } from "../support/runs.js";
import { startToolServer } from "../support/tool-server.js";

let stage: GeminiStage;
beforeEach(async () => {
  stage = await GeminiStage.open();
});
afterEach(() => stage.close());

describe("Gemini CLI, as a process", () => {
  it("answers with text, and reports its usage and model", async () => {
    const { agent, scope } = await stage.start({
      request: stage.requestWith({ model: "google/gemini-2.5-pro" }),
    });
    const events = await eventsOf(agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(events.at(-2)).toEqual({ type: "usage", input: 1200, output: 50, total: 1250 });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    expect(stage.model.requests[0]).toMatchObject({ model: "gemini-2.5-pro", status: 200 });
    expect(agent.model).toBe("gemini-2.5-pro");
    await scope.close();
  });

  it("calls a published tool, after asking for it by its own name and with its input", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await stage.start({ servers: [tools.published] });
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

  it("resumes an earlier conversation in a new process, without replaying it as events", async () => {
    const first = await stage.start();
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    await backdateConversations();
    const second = await stage.start({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("loaded");
    const events = await eventsOf(second.agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("the earlier answer");
    await second.scope.close();
  });

  it("reports a new conversation if the CLI lost the earlier one", async () => {
    const first = await stage.start();
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    await rm(chats(), { recursive: true });
    const second = await stage.start({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("new");
    expect(textOf(await eventsOf(second.agent, turnOf()))).toBe("Hello from the scripted model.");
    await second.scope.close();
  });

  it("replaces its own prompt with systemPrompt, followed by appendSystemPrompt", async () => {
    const request = stage.requestWith({ systemPrompt: "SYSTEM ONLY", appendSystemPrompt: "AND THIS" });
    const { agent, scope } = await stage.start({ request });
    await eventsOf(agent, turnOf());
    const body = JSON.stringify(stage.model.requests[0]?.body);
    expect(body).toContain("SYSTEM ONLY");
    expect(body).toContain("AND THIS");
    expect(body).not.toContain("You are Gemini CLI");
    await scope.close();
  });

  it("runs several calls of one response, each with its own result", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await stage.start({ servers: [tools.published] });
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
  return join(stage.sandbox.home, ".gemini", "tmp", "workspace", "chats");
}

/** The CLI names a conversation's file by the minute, and overwrites it if it loads one of the same minute. */
async function backdateConversations(): Promise<void> {
  for (const name of await readdir(chats())) {
    await rename(
      join(chats(), name),
      join(chats(), name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d/, "2026-01-01T00-00")),
    );
  }
}
