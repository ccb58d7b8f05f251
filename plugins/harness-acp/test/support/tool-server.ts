import { once } from "node:events";
import { createServer } from "node:http";
import type { PublishedServer } from "@ambit/core/plugin";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

export interface ToolServer extends AsyncDisposable {
  readonly published: PublishedServer;
  /** Arguments of every call, in order. */
  readonly calls: unknown[];
}

const token = "tool-server-token";

/** A real MCP endpoint on loopback with one tool, `lookup`, which returns the requested key. */
export async function startToolServer(): Promise<ToolServer> {
  const calls: unknown[] = [];
  let listed = false;
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "ambit", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => {
      listed = true;
      const inputSchema = {
        type: "object" as const,
        properties: { key: { type: "string" } },
        required: ["key"],
      };
      return { tools: [{ name: "lookup", description: "Looks a key up.", inputSchema }] };
    });
    server.setRequestHandler("tools/call", ({ params }) => {
      calls.push(params.arguments);
      return { content: [{ type: "text", text: `value of ${String(params.arguments?.key)}` }] };
    });
    return server;
  });
  const listener = createServer(
    getRequestListener((request) =>
      request.headers.get("authorization") === `Bearer ${token}`
        ? handler.fetch(request)
        : new Response("Unauthorized", { status: 401 }),
    ),
  );
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The server has no TCP port.");
  return {
    calls,
    published: {
      name: "ambit",
      url: `http://127.0.0.1:${address.port}/mcp`,
      headers: { Authorization: `Bearer ${token}` },
      listed: () => listed,
    },
    async [Symbol.asyncDispose]() {
      listener.closeAllConnections();
      listener.close();
      await once(listener, "close");
    },
  };
}
