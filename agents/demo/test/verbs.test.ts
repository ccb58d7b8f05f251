import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { greeting } from "../src/grammar.js";
import { play, startDemo, temporaryFolder } from "./demo-process.js";

async function webServer(
  respond: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(respond).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("initialize lists the agent's capabilities", async () => {
  const { initialized } = await startDemo();
  expect(initialized).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: "ambit-agent-demo" },
    agentCapabilities: {
      loadSession: true,
      mcpCapabilities: { http: true, sse: false },
      promptCapabilities: { image: true, embeddedContext: true },
      sessionCapabilities: { close: {}, resume: {} },
    },
  });
});

test("a prompt without an instruction is answered with the list of verbs", async () => {
  const { demo, response } = await play("Hello, who are you?");
  expect(demo.said()).toBe(greeting);
  expect(response).toMatchObject({ stopReason: "end_turn", usage: { inputTokens: 4 } });
});

test("say, think and an unknown verb", async () => {
  const { demo, response } = await play("say one two\nthink hm\nfrobnicate x\nsay three");
  expect(demo.updates).toEqual([
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "one two" } },
    { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } },
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "\nI don't know 'frobnicate'" } },
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "\nthree" } },
  ]);
  expect(response.usage).toEqual({ inputTokens: 9, outputTokens: 7, totalTokens: 16 });
});

test("what is delegated is done within its call, and isn't the agent's own text", async () => {
  const { demo } = await play("delegate say I look.\\nread none.txt\nsay done");
  const [call, working, said, read] = demo.updates;
  expect(call).toMatchObject({ sessionUpdate: "tool_call", name: "delegate", status: "pending" });
  const { toolCallId } = Object(call);
  const within = { _meta: { parentToolCallId: toolCallId } };
  expect(working).not.toHaveProperty("_meta");
  expect(said).toMatchObject({ ...within, content: { text: "I look." } });
  expect(read).toMatchObject({ ...within, sessionUpdate: "tool_call", title: "Read none.txt" });
  expect(demo.updates.at(-2)).toMatchObject({
    sessionUpdate: "tool_call_update",
    toolCallId,
    status: "completed",
    content: [{ content: { text: "I look." } }],
  });
  expect(demo.updates.at(-1)).toEqual({
    sessionUpdate: "agent_message_chunk",
    content: { type: "text", text: "done" },
  });
});

test("usage and stop determine the response; stop ends the script", async () => {
  const { demo, response } = await play("usage 10 20\nstop max_tokens\nsay never");
  expect(response).toEqual({
    stopReason: "max_tokens",
    usage: { inputTokens: 10, outputTokens: 20, totalTokens: 30 },
  });
  expect(demo.updates).toEqual([]);
});

test("run reports output, exit code, folder and environment", async () => {
  const home = await temporaryFolder();
  const { tools } = await play("run echo out; echo err >&2; pwd; echo $NAMED; exit 3\nrun true", {
    home,
    environment: { NAMED: "from-the-agent" },
  });
  expect(tools).toMatchObject([
    {
      kind: "execute",
      rawInput: { command: "echo out; echo err >&2; pwd; echo $NAMED; exit 3" },
      statuses: ["pending", "in_progress", "failed"],
      rawOutput: { exitCode: 3, signal: null },
    },
    { statuses: ["pending", "in_progress", "completed"], text: "exit code 0" },
  ]);
  for (const part of ["out\n", "err\n", `${home}\n`, "from-the-agent\n", "exit code 3"]) {
    expect(tools[0]?.text).toContain(part);
  }
});

test("write, then read; a missing file is a failed call with its code", async () => {
  const home = await temporaryFolder();
  const { tools, demo } = await play(
    "write a/b.txt one\\ntwo\nwrite a/b.txt new\nread a/b.txt\nread none\nsay on",
    {
      home,
    },
  );
  const path = join(home, "a/b.txt");
  expect(await readFile(path, "utf8")).toBe("new");
  expect(tools.slice(0, 2).map((tool) => tool.content)).toEqual([
    [{ type: "diff", path, oldText: null, newText: "one\ntwo" }],
    [{ type: "diff", path, oldText: "one\ntwo", newText: "new" }],
  ]);
  expect(tools[2]).toMatchObject({
    kind: "read",
    text: "new",
    statuses: ["pending", "in_progress", "completed"],
  });
  expect(tools[3]).toMatchObject({
    text: expect.stringContaining("ENOENT"),
    statuses: ["pending", "in_progress", "failed"],
  });
  expect(demo.said()).toBe("on");
});

test("run! isn't executed if it is rejected", async () => {
  const home = await temporaryFolder();
  const { tools } = await play("run! touch made\nrun ls", { home, answer: "reject_once" });
  expect(tools).toMatchObject([{ text: "rejected" }, { statuses: ["pending", "in_progress", "completed"] }]);
  expect(tools[1]?.text).not.toContain("made");
});

test("fetch reports status and the body's first 2,000 characters; a refusal is a failed call with its code", async () => {
  const url = await webServer((_, response) => response.writeHead(404).end("é".repeat(3_000)));
  const { tools } = await play(`fetch ${url}/x\nfetch http://127.0.0.1:9/`);
  // Port 9 is one that fetch itself refuses to use.
  expect(tools).toMatchObject([
    { kind: "fetch", text: `404\n${"é".repeat(2_000)}`, rawOutput: { status: 404 } },
    { statuses: ["pending", "in_progress", "failed"], text: expect.stringContaining("bad port") },
  ]);
});

test("fetch names the cause if nothing listens", async () => {
  const { tools } = await play("fetch http://127.0.0.1:10/");
  expect(tools[0]?.text).toContain("ECONNREFUSED");
});

test("env returns the whole environment and nothing else", async () => {
  const home = await temporaryFolder();
  const { demo } = await play("env", { home, environment: { CANARY: "sings" } });
  const environment = JSON.parse(demo.said());
  expect(environment).toMatchObject({ CANARY: "sings", HOME: home });
  expect(Object.keys(environment).sort()).toEqual(["CANARY", "HOME", "PATH"]);
});

test.each([
  ["allow_once", "completed"],
  ["allow_always", "completed"],
  ["reject_once", "failed"],
  ["reject_always", "failed"],
  ["cancelled", "failed"],
])("ask reports the answer %s, and asks every time", async (answer, status) => {
  const { demo, tools } = await play("ask rm -rf /\nask rm -rf /", { answer });
  expect(demo.questions).toHaveLength(2);
  expect(demo.questions[0]?.toolCall).toMatchObject({ kind: "execute", title: "rm -rf /" });
  expect(demo.said()).toBe(`${answer}: rm -rf /\n${answer}: rm -rf /`);
  expect(tools.map((tool) => tool.statuses.at(-1))).toEqual([status, status]);
});

test("an option that was never offered is a failed call", async () => {
  const { tools } = await play("run! touch made", { answer: "yes-please" });
  expect(tools).toMatchObject([
    { statuses: ["pending", "failed"], text: expect.stringContaining("not offered") },
  ]);
});

test("stream, big, image, plan", async () => {
  const { demo } = await play("stream 2500\nstream 2 ab\nbig 100000\nimage\nplan a; b");
  const numbers = Array.from({ length: 2_500 }, (_, index) => `${index + 1} `).join("");
  expect(demo.said()).toBe(`${numbers}abab${"x".repeat(100_000)}`);
  expect(demo.updates).toHaveLength(2_500 + 2 + 1 + 1 + 1);
  expect(demo.updates.slice(-2)).toMatchObject([
    { content: { type: "image", mimeType: "image/png" } },
    {
      sessionUpdate: "plan",
      entries: [
        { content: "a", status: "in_progress" },
        { content: "b", status: "pending" },
      ],
    },
  ]);
});

test("attachments lists the blocks that aren't text", async () => {
  const demo = await startDemo();
  await demo.agent.request("session/prompt", {
    sessionId: await demo.newSession(),
    prompt: [
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "text", text: "attachments" },
      { type: "resource", resource: { uri: "file:///notes.txt", text: "hi" } },
    ],
  });
  expect(demo.said()).toBe("image image/png 3 bytes\nresource file:///notes.txt");
});
