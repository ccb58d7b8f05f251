import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GeminiStage } from "../../support/gemini-stage.js";
import { eventsOf, ofType, textOf, turnOf } from "../../support/runs.js";
import { startToolServer } from "../../support/tool-server.js";

let stage: GeminiStage;
beforeAll(async () => {
  stage = await GeminiStage.open();
});
afterAll(() => stage.close());

/** Few starts: each takes a second of CPU. */
describe("Gemini CLI, as a process", { timeout: 60_000 }, () => {
  it("answers as its model, with the request's prompts, and calls published tools by their own names", async () => {
    await using tools = await startToolServer();
    const request = stage.requestWith({
      model: "google/gemini-2.5-pro",
      systemPrompt: "SYSTEM ONLY",
      appendSystemPrompt: "AND THIS",
    });
    const { agent, scope } = await stage.start({ request, servers: [tools.published] });
    const events = await eventsOf(agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(events.at(-2)).toEqual({ type: "usage", input: 1200, output: 50, total: 1250 });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    expect(stage.model.requests[0]).toMatchObject({ model: "gemini-2.5-pro", status: 200 });
    expect(agent.model).toBe("gemini-2.5-pro");
    const body = JSON.stringify(stage.model.requests[0]?.body);
    expect(body).toContain("SYSTEM ONLY");
    expect(body).toContain("AND THIS");
    expect(body).not.toContain("You are Gemini CLI");

    expect(tools.published.listed()).toBe(true);
    const turn = turnOf({ prompt: '[[call lookup {"key":"k"}]]' });
    const called = await eventsOf(agent, turn);
    expect(tools.calls).toEqual([{ key: "k" }]);
    expect(turn.questions).toMatchObject([{ toolName: "lookup", server: "ambit", input: { key: "k" } }]);
    expect(ofType(called, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    expect(ofType(called, "tool_result")).toMatchObject([{ output: "value of k" }]);
    expect(textOf(called)).toContain("value of k");

    const prompt = '[[both call lookup {"key":"a"};;call lookup {"key":"b"}]]';
    const both = await eventsOf(agent, turnOf({ prompt }));
    expect(tools.calls.slice(1)).toEqual([{ key: "a" }, { key: "b" }]);
    const ids = ofType(both, "tool_call").map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(ofType(both, "tool_result").map(({ id }) => id)).toEqual(ids);
    await scope.close();
  });

  it("resumes an earlier conversation in a new process, without replaying it, and reports a lost one", async () => {
    const first = await stage.start();
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    const resume = { resume: first.agent.conversation };
    await backdateConversations();
    const second = await stage.start(resume);
    expect(second.agent.history).toBe("loaded");
    const events = await eventsOf(second.agent, turnOf({ prompt: "hello" }));
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("the earlier answer");
    await second.scope.close();

    await rm(chats(), { recursive: true });
    const third = await stage.start(resume);
    expect(third.agent.history).toBe("new");
    expect(textOf(await eventsOf(third.agent, turnOf()))).toBe("Hello from the scripted model.");
    await third.scope.close();
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
