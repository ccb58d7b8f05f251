import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { HttpCaller } from "../http.js";

/** A minimal MCP server that posts each call on. */
export interface DirectTools {
  readonly servers: McpServer[];
  /** Resolves when the agent has listed the tools. */
  readonly listed: Promise<void>;
  close(): Promise<void>;
}

export async function openDirectTools(toolUrl: string): Promise<DirectTools> {
  const caller = new HttpCaller(toolUrl);
  let wasListed = () => {};
  const listed = new Promise<void>((resolve) => {
    wasListed = resolve;
  });
  const handler = createMcpHandler(
    () => {
      const server = new Server({ name: "ambit", version: "1" }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => {
        wasListed();
        return { tools: [{ name: "crm_search_contacts_0", inputSchema: { type: "object" as const } }] };
      });
      server.setRequestHandler("tools/call", async ({ params }) => {
        const call = { name: params.name, arguments: params.arguments };
        const { text } = await caller.post(
          "/",
          JSON.stringify({ data: { id: randomUUID(), type: "function", function: call } }),
        );
        return { content: [{ type: "text", text }] };
      });
      return server;
    },
    { responseMode: "sse" },
  );
  const server = createServer((request, response) => {
    answer(handler.fetch, request, response).catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("loopback gave no port");
  return {
    listed,
    servers: [{ type: "http", name: "ambit", url: `http://127.0.0.1:${address.port}/mcp`, headers: [] }],
    close: async () => {
      await handler.close();
      server.closeAllConnections();
      server.close();
      caller.close();
    },
  };
}

async function answer(
  fetch: (request: Request, options: { parsedBody: unknown }) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" ? [[name, value]] : [],
  );
  const method = incoming.method ?? "GET";
  const request = new Request(`http://127.0.0.1${incoming.url}`, {
    method,
    headers,
    ...(text === "" ? {} : { body: text }),
  });
  const response = await fetch(request, { parsedBody: text === "" ? undefined : JSON.parse(text) });
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body !== null) for await (const chunk of response.body) outgoing.write(chunk);
  outgoing.end();
}
