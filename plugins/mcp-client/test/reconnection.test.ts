import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { reconnectionPause } from "../src/transport/http.js";
import { httpServer, TestScope } from "./support/runs.js";

const askedSchema = z.object({ id: z.union([z.number(), z.string()]).optional(), method: z.string() });
const results: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "r", version: "1" },
  },
  "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
  "tools/call": { content: [{ type: "text", text: "back" }] },
};
const calls = 100;

/** Ends each stream at once, and asks for the next one without a pause. */
async function endsStreams() {
  const seen = { streams: 0 };
  const answer = async (request: IncomingMessage) => {
    const { id, method } = askedSchema.parse(await json(request));
    const result = results[method];
    return {
      jsonrpc: "2.0",
      id,
      ...(result === undefined ? { error: { code: -32_601, message: "no" } } : { result }),
    };
  };
  const http = createServer(async (request, response) => {
    if (request.method === "GET") {
      seen.streams += 1;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end("retry: 0\nid: 1\ndata:\n\n");
      return;
    }
    const body = await answer(request);
    if (body.id === undefined) response.writeHead(202).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/mcp`, seen };
}

test("a server that ends its stream at once gets the next one after a pause", async () => {
  const { url, seen } = await endsStreams();
  const scope = new TestScope();
  onTestFinished(() => scope.close());
  const loopback = { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true };
  const publication = await new HttpToolSource(configSchema.parse(loopback)).connect(httpServer(url), scope);
  for (let index = 0; index < calls; index += 1) {
    const call = { name: "echo", arguments: {}, signal: scope.signal };
    expect(await publication.call(call)).toEqual({ output: "back", isError: false });
  }
  expect(seen.streams).toBeGreaterThan(0);
  expect(seen.streams).toBeLessThan(calls / 4);

  // The control: the SDK alone opens the next stream at once.
  const other = await endsStreams();
  const client = new Client({ name: "test", version: "1" });
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(other.url)));
  for (let index = 0; index < calls; index += 1) await client.callTool({ name: "echo", arguments: {} });
  expect(other.seen.streams).toBeGreaterThan(calls / 4);
});

test.each([
  [0, 1_000],
  [1_000, 1_000],
  [5_000, 5_000],
  [3_000_000_000, 60_000],
  [Number.POSITIVE_INFINITY, 60_000],
])("a server that asks for a pause of %d ms gets %d", (asked, pause) => {
  expect(reconnectionPause(asked)).toBe(pause);
});
