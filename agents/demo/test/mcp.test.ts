import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import { expect, onTestFinished, test } from "vitest";
import { type DemoProcess, startDemo, toolCalls } from "./demo-process.js";
import { startMcpServer, type TestMcpServer } from "./mcp-server.js";

function over(server: TestMcpServer, name = "lab", token = server.token): McpServer {
  return {
    type: "http",
    name,
    url: server.url,
    headers: [{ name: "Authorization", value: `Bearer ${token}` }],
  };
}

async function playWith(servers: McpServer[], script: string, answer?: string) {
  const demo = await startDemo(answer === undefined ? {} : { answer });
  const response = await demo.prompt(await demo.newSession(servers), script);
  return { demo, response, tools: toolCalls(demo.updates) };
}

function inProgress(demo: DemoProcess) {
  return demo.seen(
    (update) => update.sessionUpdate === "tool_call_update" && update.status === "in_progress",
  );
}

test("tools are listed once per session, even when none is called", async () => {
  const server = await startMcpServer();
  const demo = await startDemo();
  const session = await demo.newSession([over(server)]);
  await demo.prompt(session, "say one");
  await demo.prompt(session, "tools");
  expect(demo.said()).toContain('["lab/echo","lab/broken","lab/slow","lab/meet"]');
  expect(server.seen).toEqual(["tools/list"]);
});

test("a call has all its statuses and the unchanged result", async () => {
  const server = await startMcpServer();
  const { tools, demo } = await playWith([over(server)], 'call echo {"x":"y"}');
  expect(tools).toMatchObject([
    {
      title: "mcp__lab__echo",
      rawInput: { x: "y" },
      statuses: ["pending", "in_progress", "completed"],
      text: '{"x":"y"}',
      rawOutput: { structuredContent: { echoed: { x: "y" } } },
    },
  ]);
  const announced = demo.updates.find((update) => update.sessionUpdate === "tool_call");
  const callId = announced?.sessionUpdate === "tool_call" ? announced.toolCallId : "none";
  // Without a progress token the server can't keep a long call alive.
  expect(server.metas).toMatchObject([{ callId, progressToken: expect.anything() }]);
  expect(demo.questions).toEqual([]);
});

test("a tool's failure, an unlisted tool and an unknown one are failed calls; the script continues", async () => {
  const server = await startMcpServer();
  const { tools, demo, response } = await playWith(
    [over(server)],
    "call broken\ncall lab/missing\ncall nowhere\nsay still here",
  );
  expect(tools.map((tool) => [tool.statuses.at(-1), tool.text])).toEqual([
    ["failed", "it broke"],
    ["failed", expect.stringContaining("no such tool")],
    ["failed", expect.stringContaining("no MCP server offers 'nowhere'; offered: lab/echo")],
  ]);
  expect(server.seen).toContain("tools/call missing");
  expect(demo.said()).toBe("still here");
  expect(response.stopReason).toBe("end_turn");
});

test("call! asks as Claude does; a rejected call never reaches the server", async () => {
  const server = await startMcpServer();
  const rejected = await playWith([over(server)], "call! echo\nsay on", "reject_once");
  expect(rejected.demo.questions).toMatchObject([
    {
      toolCall: { title: "mcp__lab__echo" },
      options: [
        { kind: "allow_once" },
        { kind: "allow_always" },
        { kind: "reject_once" },
        { kind: "reject_always" },
      ],
    },
  ]);
  expect(rejected.tools).toMatchObject([{ statuses: ["pending", "failed"], text: "rejected" }]);
  expect(rejected.demo.said()).toBe("on");
  expect(server.seen).toEqual(["tools/list"]);

  const allowed = await playWith([over(server)], "call! echo", "allow_once");
  expect(allowed.tools).toMatchObject([{ statuses: ["pending", "in_progress", "completed"] }]);
});

test.each([
  ["allow_once", 2, "completed"],
  ["allow_always", 1, "completed"],
  ["reject_once", 2, "failed"],
  ["reject_always", 1, "failed"],
  ["cancelled", 2, "failed"],
])("%s is asked %d times for two calls", async (answer, questions, status) => {
  const server = await startMcpServer();
  const { demo, tools } = await playWith([over(server)], "call! echo\ncall! echo", answer);
  expect(demo.questions).toHaveLength(questions);
  expect(tools.map((tool) => tool.statuses.at(-1))).toEqual([status, status]);
});

test("lines with & call at the same time", async () => {
  const server = await startMcpServer();
  const { tools } = await playWith([over(server)], '& call meet {"n":1}\n& call meet {"n":2}');
  expect(tools.map((tool) => tool.text)).toEqual(['{"n":1}', '{"n":2}']);
  expect(server.peakConcurrency).toBe(2);
});

test("the same tool on two servers must be named with its server", async () => {
  const [one, two] = [await startMcpServer(), await startMcpServer()];
  const { tools } = await playWith([over(one, "one"), over(two, "two")], "call echo\ncall two/echo");
  expect(tools).toMatchObject([
    {
      text: expect.stringContaining("use one/echo or two/echo"),
      statuses: ["pending", "in_progress", "failed"],
    },
    { title: "mcp__two__echo", statuses: ["pending", "in_progress", "completed"] },
  ]);
  expect(one.seen).toEqual(["tools/list"]);
});

test("session/cancel aborts a call on the server", async () => {
  const server = await startMcpServer();
  const demo = await startDemo();
  const sessionId = await demo.newSession([over(server)]);
  const answer = demo.prompt(sessionId, "call slow\nsay never");
  await inProgress(demo);
  await expect.poll(() => server.seen).toContain("tools/call slow");
  await demo.agent.notify("session/cancel", { sessionId });
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
  await expect.poll(() => server.aborted).toBe(1);
  expect(toolCalls(demo.updates)).toMatchObject([
    { text: "cancelled", statuses: ["pending", "in_progress", "failed"] },
  ]);
  expect(demo.said()).toBe("");
});

test("an unusable server is reported once, and the turn continues", async () => {
  const server = await startMcpServer();
  const demo = await startDemo();
  const gone: McpServer = { type: "http", name: "gone", url: "http://127.0.0.1:9/mcp", headers: [] };
  const old: McpServer = { type: "sse", name: "old", url: server.url, headers: [] };
  const session = await demo.newSession([over(server, "locked", "wrong"), gone, old]);
  await demo.prompt(session, "say on");
  expect(demo.said()).toMatch(
    /^MCP server 'locked' failed to start: .+\nMCP server 'gone' failed to start: .*ECONNREFUSED.*\nMCP server 'old' failed to start: transport 'sse' isn't supported.*\non$/,
  );
  await demo.prompt(session, "say again");
  expect(demo.said().match(/failed to start/g)).toHaveLength(3);
  expect(server.seen).toEqual([]);
});

test("a server that never responds delays the turn, but neither session/cancel nor session/close", async () => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const asked = once(silent, "request");
  const demo = await startDemo();
  const sessionId = await demo.newSession([
    { type: "http", name: "silent", url: `http://127.0.0.1:${port}/`, headers: [] },
  ]);
  const answer = demo.prompt(sessionId, "say never");
  await asked;
  await demo.agent.notify("session/cancel", { sessionId });
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
  await demo.agent.request("session/close", { sessionId });
  expect(demo.updates).toEqual([]);
});

test("a stdio server gets its own environment, not the agent's", async () => {
  const demo = await startDemo({ environment: { AGENT_ONLY: "1" } });
  const file = fileURLToPath(new URL("./stdio-mcp-server.mjs", import.meta.url));
  const session = await demo.newSession([
    { name: "pipe", command: process.execPath, args: [file], env: [{ name: "FOR_SERVER", value: "yes" }] },
  ]);
  await demo.prompt(session, "call tell");
  const [call] = toolCalls(demo.updates);
  expect(JSON.parse(call?.text ?? "")).toMatchObject({ FOR_SERVER: "yes" });
  expect(call?.text).not.toContain("AGENT_ONLY");
});
