import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import {
  createMcpHandler,
  Server as McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { bodyOf, demo, type Server, startServer } from "./support/ambit.js";
import { loopbackTools } from "./support/configurations.js";

let server: Server;

beforeAll(async () => {
  server = await startServer({}, loopbackTools);
  return () => void server.process.kill("SIGKILL");
});

/** A server of the official SDK, whose tool `grow` adds two tools, and `shrink` removes one of them. */
async function changingServer(protocol: "2025-11-25" | "2026-07-28"): Promise<string> {
  let names = ["grow", "shrink"];
  let listed = Promise.withResolvers<void>();
  let announce = () => {};
  const newServer = () => {
    const mcp = new McpServer(
      { name: "changing", version: "1" },
      { capabilities: { tools: { listChanged: true } } },
    );
    mcp.setRequestHandler("tools/list", () => {
      listed.resolve();
      return { tools: names.map((name) => ({ name, inputSchema: { type: "object" as const } })) };
    });
    mcp.setRequestHandler("tools/call", async ({ params: { name } }) => {
      if (name === "grow") names = ["grow", "shrink", "added", "denied"];
      if (name === "shrink") names = ["grow", "shrink"];
      if (name === "grow" || name === "shrink") {
        listed = Promise.withResolvers();
        announce();
        // Who heard of the change asks for the list: by then, the call's result isn't earlier than the news.
        await listed.promise;
      }
      return { content: [{ type: "text", text: `${name} was called` }] };
    });
    return mcp;
  };
  const modern = createMcpHandler(newServer);
  const legacy = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => "the-session" });
  if (protocol === "2026-07-28") announce = () => modern.notify.toolsChanged();
  else {
    const mcp = newServer();
    announce = () => void mcp.sendToolListChanged();
    await mcp.connect(legacy);
  }
  const handle = (request: Request) =>
    protocol === "2026-07-28" ? modern.fetch(request) : legacy.handleRequest(request);
  const listener = createServer(getRequestListener(handle)).listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => {
    listener.close();
    listener.closeAllConnections();
  });
  const address = listener.address();
  return `http://127.0.0.1:${Object(address).port}/mcp`;
}

describe("tools that an MCP server adds while a session lives", () => {
  it.each(["2025-11-25", "2026-07-28"] as const)(
    "reach the agent after permission, and are gone when it removes them (%s)",
    async (protocol) => {
      const url = await changingServer(protocol);
      const request = {
        sessionId: `changing-${protocol}`,
        mcpServers: [{ name: "changing", connection: { type: "http", url } }],
      };
      const outputs = async (...script: string[]) => {
        const rules = [{ pattern: "denied", permission: "deny" }];
        const asked = demo(...script);
        const permissions = { ...asked.permissions, rules };
        const result = await bodyOf(await server.post("/run", { ...asked, ...request, permissions }));
        expect(result).toMatchObject({ ok: true });
        return result.events.flatMap((event) => (event.type === "tool_result" ? [event.output] : []));
      };
      expect(
        await outputs("call changing/added", "call grow", "call changing/added", "call changing/denied"),
      ).toEqual([
        expect.stringContaining("There is no tool 'added'. Offered: grow, shrink."),
        "grow was called",
        "added was called",
        "Tool 'denied' is denied by policy.",
      ]);
      // The agent is kept, and so are its tools.
      expect(await outputs("call changing/added", "call shrink", "call changing/added")).toEqual([
        "added was called",
        "shrink was called",
        expect.stringContaining("The server has removed the tool 'added'. Offered: grow, shrink."),
      ]);
    },
  );
});
