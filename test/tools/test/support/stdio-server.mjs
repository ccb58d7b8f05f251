// An MCP server over stdio without dependencies: `local echo {"a":1}`, its own environment, an end and an endless call.
import { createInterface } from "node:readline";

const inputSchema = { type: "object", additionalProperties: true };
const tools = ["echo", "environment", "wreck", "die", "hang"].map((name) => ({ name, inputSchema }));

function called({ name, arguments: given }) {
  if (name === "die") {
    console.error(`no space left for ${process.env.SERVER_SECRET}`);
    process.exit(9);
  }
  return name === "environment" ? JSON.stringify(process.env) : `local ${name} ${JSON.stringify(given)}`;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const results = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "local", version: "1" },
    }),
    "tools/list": () => ({ tools }),
    "tools/call": () => ({ content: [{ type: "text", text: called(params) }] }),
  };
  if (params?.name === "hang") return;
  const answer = results[method];
  const outcome = answer ? { result: answer() } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});
