import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

export interface RunningMcpServer extends AsyncDisposable {
  readonly url: string;
  /** The headers of every request. */
  readonly headers: Headers[];
  /** Names of the tools that were called, in order. */
  readonly calls: string[];
}

const inputSchema = { type: "object" as const, additionalProperties: true };
const tools = [
  { name: "echo", description: "Says it back.", inputSchema },
  { name: "look", description: "Only reads.", inputSchema, annotations: { readOnlyHint: true } },
  { name: "wreck", description: "Must not be called.", inputSchema },
];

/** A real MCP server over HTTP on loopback: `remote echo {"a":1}`. */
export async function startMcpServer(): Promise<RunningMcpServer> {
  const headers: Headers[] = [];
  const calls: string[] = [];
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "remote", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", ({ params }) => {
      calls.push(params.name);
      return {
        content: [{ type: "text", text: `remote ${params.name} ${JSON.stringify(params.arguments)}` }],
      };
    });
    return server;
  });
  const http = createServer(
    getRequestListener((request) => {
      headers.push(request.headers);
      return handler.fetch(request);
    }),
  );
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const address = http.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    headers,
    calls,
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
