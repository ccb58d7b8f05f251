import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { McpServer, Publication } from "@ambit/core/plugin";
import { listening } from "@ambit/fakes/listening";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { StdioToolSource } from "../src/stdio-source.js";
import { httpServer, TestScope } from "./support/runs.js";

const config = configSchema.parse({ allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true });
const program = fileURLToPath(new URL("support/deaf-server.mjs", import.meta.url));

let scope = new TestScope();
afterEach(async () => {
  await scope.close();
  await Promise.all(scope.exits);
  scope = new TestScope();
});

interface Asked {
  readonly id?: number;
  readonly method?: string;
}

/** A server of the older protocol. `call` answers a tool's call; what isn't a request is left without a response. */
async function connected(call: (response: ServerResponse, id: number) => void) {
  const connections = { open: 0, most: 0 };
  const server = createServer(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method }: Asked = JSON.parse(await text(request));
    const answer = (rest: object) => response.end(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
    response.setHeader("content-type", "application/json");
    if (method === "notifications/initialized") return void response.writeHead(202).end();
    if (id === undefined || method === undefined) return;
    if (method === "tools/call") return call(response, id);
    const result = results[method];
    answer(result === undefined ? { error: { code: -32_601, message: "unknown" } } : { result });
  });
  server.on("connection", (socket) => {
    connections.open += 1;
    connections.most = Math.max(connections.most, connections.open);
    socket.once("close", () => {
      connections.open -= 1;
    });
  });
  const url = `http://127.0.0.1:${await listening(server, onTestFinished)}/mcp`;
  const publication = await new HttpToolSource(config).connect(httpServer(url), scope);
  return { publication, connections };
}

const results: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "remote", version: "1" },
  },
  "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
};

async function cancelledCall(publication: Publication, given: Record<string, unknown> = {}) {
  const abort = new AbortController();
  const called = publication.call({ name: "t", arguments: given, signal: abort.signal });
  await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort();
  return await called;
}

test.each([
  ["not at all", () => {}],
  [
    "with a stream that stays open",
    (response: ServerResponse) =>
      response.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n"),
  ],
])("cancelled calls that a server answers %s leave no connection", async (_how, call) => {
  const { publication, connections } = await connected(call);
  for (let count = 0; count < 100; count += 1) await cancelledCall(publication);
  // Those of the cancellations, which this server doesn't accept.
  expect(connections.most).toBeLessThan(60);
});

test("a stream that stays open after its answer is ended", async () => {
  const { publication, connections } = await connected((response, id) => {
    const result = { content: [{ type: "text", text: "done" }] };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
  });
  const { signal } = new AbortController();
  for (let count = 0; count < 20; count += 1)
    expect(await publication.call({ name: "t", arguments: {}, signal })).toMatchObject({ output: "done" });
  await vi.waitFor(() => expect(connections.open).toBeLessThan(5), { timeout: 10_000 });
});

test("a server that asks much and accepts no answer gets few connections", async () => {
  const { publication, connections } = await connected((response, id) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let ping = 0; ping < 1_000; ping += 1)
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: `p${ping}`, method: "ping" })}\n\n`);
    const result = { content: [{ type: "text", text: "done" }] };
    response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
  });
  const { signal } = new AbortController();
  expect(await publication.call({ name: "t", arguments: {}, signal })).toMatchObject({ output: "done" });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(connections.most).toBeLessThan(60);
});

test("a stdio server that doesn't read gets no more than 16 MiB, and is ended at once", async () => {
  const connection: McpServer["connection"] = { type: "stdio", command: "node", args: [program] };
  const publication = await new StdioToolSource(config).connect({ name: "deaf", connection }, scope);
  const large = { text: "x".repeat(1024 * 1024) };
  const outputs = new Set<string>();
  for (let count = 0; count < 20; count += 1) outputs.add((await cancelledCall(publication, large)).output);
  expect([...outputs]).toEqual([
    "The call of 't' was cancelled.",
    "MCP server 'deaf' doesn't read its input. The call was not made.",
  ]);
  await scope.close();
});
