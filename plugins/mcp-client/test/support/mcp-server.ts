import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { z } from "zod";

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

const askedSchema = z.object({ id: z.union([z.number(), z.string()]).optional(), method: z.string() });
/** A JSON-RPC request or notification, as far as tests look at it. */
export type Asked = z.infer<typeof askedSchema>;

/** A real MCP server over HTTP on loopback. Paths that aren't /mcp are left to `other`, and requests to `instead` first. */
export async function startMcpServer(
  other?: (request: Request) => Response,
  instead: (asked: Asked) => object | undefined = () => undefined,
): Promise<RunningServer> {
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
    getRequestListener(async (request) => {
      headers.push(request.headers);
      if (other !== undefined && new URL(request.url).pathname !== "/mcp") return other(request);
      const own =
        request.method === "POST" ? instead(askedSchema.parse(await request.clone().json())) : undefined;
      return own === undefined ? handler.fetch(request) : Response.json(own);
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
