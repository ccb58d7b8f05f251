// An MCP server over stdio that lists a tool and then reads nothing more, but stays.
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "deaf", version: "1" },
    }),
    "tools/list": () => ({ tools: [{ name: "t", inputSchema: { type: "object" } }] }),
  }[method];
  const answer = result ? { result: result() } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  if (method !== "tools/list") return;
  lines.pause();
  setInterval(() => {}, 1_000);
});
