import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { createMcpHandler, Server, type Tool } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";

/** A real MCP server over HTTP with a few tools that records requests. */
export interface TestMcpServer {
  readonly url: string;
  readonly token: string;
  /** Methods of the requests, in order; calls as `tools/call NAME`. */
  readonly seen: string[];
  /** `_meta` of each call. */
  readonly metas: unknown[];
  /** Most calls that were running at the same time. */
  peakConcurrency: number;
  /** Calls that were aborted by the client. */
  aborted: number;
}

const anyObject: Tool["inputSchema"] = { type: "object" };
const tools: Tool[] = ["echo", "broken", "slow", "meet"].map((name) => ({ name, inputSchema: anyObject }));

export async function startMcpServer(): Promise<TestMcpServer> {
  const seen: string[] = [];
  const metas: unknown[] = [];
  const token = "demo-test-token";
  let waiting: (() => void)[] = [];
  let running = 0;

  const handler = createMcpHandler(
    () => {
      const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => {
        seen.push("tools/list");
        return { tools };
      });
      server.setRequestHandler("tools/call", async (request, context) => {
        const { name, arguments: input, _meta } = request.params;
        seen.push(`tools/call ${name}`);
        metas.push(_meta);
        running += 1;
        state.peakConcurrency = Math.max(state.peakConcurrency, running);
        try {
          if (name === "broken") return { isError: true, content: [{ type: "text", text: "it broke" }] };
          if (name === "slow") {
            await new Promise<void>((resolve) =>
              context.mcpReq.signal.addEventListener("abort", () => resolve()),
            );
            state.aborted += 1;
          }
          if (name === "meet") {
            // Answers only after two calls have arrived.
            await new Promise<void>((resolve) => {
              waiting.push(resolve);
              if (waiting.length === 2) for (const go of waiting.splice(0)) go();
            });
          }
          if (name === "missing") throw new Error("no such tool");
          return {
            content: [{ type: "text", text: JSON.stringify(input) }],
            structuredContent: { echoed: input },
          };
        } finally {
          running -= 1;
        }
      });
      return server;
    },
    { responseMode: "sse" },
  );
  const server = serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request: Request) =>
      request.headers.get("authorization") === `Bearer ${token}`
        ? handler.fetch(request)
        : new Response("unauthorized", { status: 401 }),
  });
  await once(server, "listening");
  onTestFinished(async () => {
    for (const go of waiting) go();
    waiting = [];
    await handler.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const state: TestMcpServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    token,
    seen,
    metas,
    peakConcurrency: 0,
    aborted: 0,
  };
  return state;
}
