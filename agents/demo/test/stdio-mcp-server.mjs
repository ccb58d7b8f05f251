import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

/** An MCP server over stdio whose one tool returns its environment. */
serveStdio(() => {
  const server = new Server({ name: "stdio-test", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({
    tools: [{ name: "tell", inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler("tools/call", () => ({
    content: [{ type: "text", text: JSON.stringify(process.env) }],
  }));
  return server;
});
