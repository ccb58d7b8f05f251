// A server of the official SDK, as a process: `http <port> <version>` or `stdio`. Each execution of a tool is a line of $EXECUTED.
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import {
  createMcpHandler,
  inputRequired,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

const [kind, port, version] = process.argv.slice(2);
const names = ["work", "die", "hang", "wait", "ask"];
let release = () => {};
const released = new Promise((resolve) => {
  release = resolve;
});
const text = (said) => ({ content: [{ type: "text", text: said }] });

function newServer() {
  const server = new Server({ name: "remote", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: names.map((name) => ({ name, inputSchema: { type: "object" } })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    appendFileSync(process.env.EXECUTED, `${params.name}\n`);
    if (params.name === "die") {
      if (process.env.LAST_WORDS) console.error(process.env.LAST_WORDS);
      process.stderr.write("out of memory while working\n");
      process.exit(7);
    }
    if (params.name === "wait") return released.then(() => text("waited"));
    if (params.name === "hang") await new Promise(() => {});
    if (params.name === "ask") {
      const asking = {
        method: "elicitation/create",
        params: { message: "Name?", requestedSchema: { type: "object", properties: {} } },
      };
      if (version === "2026-07-28") return inputRequired({ inputRequests: { name: asking } });
      return text(
        await context.mcpReq.send(asking).then(
          () => "answered",
          (error) => `${error.code} ${error.message}`,
        ),
      );
    }
    return text("worked");
  });
  return server;
}

/** Sessions as the SDK's examples keep them: one transport each. */
function sessionsHandler() {
  const transports = new Map();
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/release") {
      release();
      return new Response();
    }
    if (pathname === "/expire") {
      const count = transports.size;
      transports.clear();
      return new Response(String(count));
    }
    const id = request.headers.get("mcp-session-id");
    const existing = transports.get(id);
    if (existing !== undefined) return existing.handleRequest(request);
    if (id !== null && process.env.UNKNOWN_SESSION === "404")
      return new Response("Session not found", { status: 404 });
    // A transport that wasn't initialized answers 400 to any other request.
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void transports.set(session, transport),
    });
    await newServer().connect(transport);
    return transport.handleRequest(request);
  };
}

if (kind === "stdio") {
  if (process.env.BREAKS === "at start") {
    process.stderr.write("no configuration at /etc/tool.conf\n");
    process.exit(3);
  }
  const server = newServer();
  if (process.env.BREAKS === "after its start")
    server.oninitialized = () => {
      process.stderr.write("licence expired\n");
      process.exit(4);
    };
  await server.connect(new StdioServerTransport());
} else {
  const handler = version === "2026-07-28" ? createMcpHandler(newServer) : { fetch: sessionsHandler() };
  const server = createServer(getRequestListener((request) => handler.fetch(request)));
  // A busy machine would use an idle connection just when it is closed.
  server.keepAliveTimeout = 0;
  server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
}
