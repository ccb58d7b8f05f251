import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import {
  createMcpHandler,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";

export interface RunningMcpServer extends AsyncDisposable {
  readonly url: string;
  /** The headers of every request. */
  readonly headers: Headers[];
  /** Names of the tools that were called, in order. */
  readonly calls: string[];
  /** It forgets its sessions. */
  expire(): void;
}

const inputSchema = { type: "object" as const, additionalProperties: true };
const tools = [
  { name: "echo", description: "Says it back.", inputSchema },
  { name: "look", description: "Only reads.", inputSchema, annotations: { readOnlyHint: true } },
  { name: "wreck", description: "Must not be called.", inputSchema },
];

/**
 * A real MCP server over HTTP on loopback: `remote echo {"a":1}`.
 *
 * @param protocol `with sessions`: 2025-11-25 with a session for each client. Default: the newest one, without.
 */
export async function startMcpServer(protocol?: "with sessions"): Promise<RunningMcpServer> {
  const headers: Headers[] = [];
  const calls: string[] = [];
  const sessions = new Map<string | null, WebStandardStreamableHTTPServerTransport>();
  const newServer = () => {
    const server = new Server({ name: "remote", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", ({ params }) => {
      calls.push(params.name);
      return {
        content: [{ type: "text", text: `remote ${params.name} ${JSON.stringify(params.arguments)}` }],
      };
    });
    return server;
  };
  const inSession = async (request: Request) => {
    const id = request.headers.get("mcp-session-id");
    const existing = sessions.get(id);
    if (existing !== undefined) return existing.handleRequest(request);
    if (id !== null) return new Response("Session not found", { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
    });
    await newServer().connect(transport);
    return await transport.handleRequest(request);
  };
  const newest = createMcpHandler(newServer);
  const http = createServer(
    getRequestListener((request) => {
      headers.push(request.headers);
      return protocol === undefined ? newest.fetch(request) : inSession(request);
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
    expire: () => sessions.clear(),
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
