// A careless MCP server over stdio: it prints a line that isn't a message before it answers.
import { createInterface } from "node:readline";

console.log("starting up, this is no JSON");
const tools = [{ name: "environment", inputSchema: { type: "object" } }];
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "stdio", version: "1" },
    }),
    "tools/list": () => ({ tools }),
    "tools/call": () => ({ content: [{ type: "text", text: JSON.stringify(process.env) }] }),
  }[method];
  const answer = result ? { result: result() } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
