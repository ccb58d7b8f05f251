// An MCP server that sends what a test asks for: many tools, many pages of them, or a result of many values or with other content.
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The message in response to `line`, as JSON; undefined for a notification. */
export function answerTo(
  line,
  { tools, pages = 1, values = 0, blocks = 1, block = { type: "text", text: "done" } },
) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return undefined;
  const page = Number(params?.cursor ?? 1);
  const listed = () =>
    Array.from({ length: tools }, (_, at) => ({
      name: page === 1 ? `t${at}` : `t${at} of page ${page}`,
      inputSchema: { type: "object" },
    }));
  const result = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "costly", version: "1" },
    }),
    "tools/list": () => ({ tools: listed(), ...(page < pages ? { nextCursor: String(page + 1) } : {}) }),
    "tools/call": () => ({
      content: Array(blocks).fill(block),
      ...(values === 0 ? {} : { structuredContent: { values: Array(values).fill(0) } }),
    }),
  }[method];
  const answer = result ? { result: result() } : { error: { code: -32601, message: "no such method" } };
  return JSON.stringify({ jsonrpc: "2.0", id, ...answer });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sends = JSON.parse(process.env.SENDS);
  createInterface({ input: process.stdin }).on("line", (line) => {
    const answer = answerTo(line, sends);
    if (answer !== undefined) console.log(answer);
  });
}
