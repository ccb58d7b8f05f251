import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

export interface RunningServer extends AsyncDisposable {
  readonly port: number;
  readonly headers: Headers[];
}

const tools = [
  {
    name: "echo",
    description: "Says it back.",
    inputSchema: { type: "object" as const, properties: { text: { type: "string" } } },
  },
  { name: "look", inputSchema: { type: "object" as const }, annotations: { readOnlyHint: true } },
  { name: "wreck", inputSchema: { type: "object" as const } },
  {
    name: "burn",
    inputSchema: { type: "object" as const },
    outputSchema: {
      type: "object" as const,
      properties: { a: { type: "string" as const, pattern: "^([a-zA-Z0-9]+)+$" } },
    },
  },
];

/** A real MCP server over HTTP on loopback. Paths that aren't /mcp are left to `other`. */
export async function startMcpServer(other?: (request: Request) => Response): Promise<RunningServer> {
  const headers: Headers[] = [];
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "remote", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", ({ params }) => ({
      content: [{ type: "text", text: `${params.name}: ${JSON.stringify(params.arguments)}` }],
      isError: params.name === "wreck",
      ...(params.name === "burn" ? { structuredContent: { a: `${"a".repeat(60)}!` } } : {}),
    }));
    return server;
  });
  const http = createServer(
    getRequestListener((request) => {
      headers.push(request.headers);
      return new URL(request.url).pathname === "/mcp" || other === undefined
        ? handler.fetch(request)
        : other(request);
    }),
  );
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const address = http.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    headers,
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
