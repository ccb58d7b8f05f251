/** What the kit's MCP server does. `normal` behaves well; each of the others differs in one thing. */
export type ServerScript = "normal" | "never-answers" | "refuses" | "exits-at-once" | "no-server";

/** The tools of the kit's server, as a source must publish them. */
export const servedTools = [
  {
    name: "echo",
    description: "Says its arguments. ☃",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  { name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
  { name: "fail", inputSchema: { type: "object" } },
  { name: "wait", inputSchema: { type: "object" } },
] as const;

/**
 * The source of the kit's MCP server as one file: a Node.js program that needs nothing but Node.js. It uses its
 * standard streams; with the argument `http` it listens on a free port of loopback instead, and prints its URL.
 */
export function mcpProgram(script: ServerScript): string {
  return `const script = ${JSON.stringify(script)};
const tools = ${JSON.stringify(servedTools)};
${program}`;
}

const program = `
import { createServer } from "node:http";

const isHttp = process.argv[2] === "http";
if (script === "exits-at-once" && !isHttp) process.exit(7);
process.on("SIGTERM", () => {});

const text = (text, isError = false) => ({ content: [{ type: "text", text }], isError });

function call({ name, arguments: given }) {
  if (name === "wait") return new Promise(() => {});
  return name === "fail" ? text("it failed", true) : text(JSON.stringify(given));
}

/** Undefined for a message without a response. */
async function answer({ id, method, params }) {
  if (id === undefined) return undefined;
  if (script === "never-answers") return await new Promise(() => {});
  if (script === "refuses") return { id, error: { code: -32603, message: "out of order" } };
  if (method === "initialize") {
    const { protocolVersion } = params;
    return { id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "kit", version: "1" } } };
  }
  if (method === "tools/list") return { id, result: { tools } };
  if (method === "tools/call") return { id, result: await call(params) };
  return method === "ping" ? { id, result: {} } : { id, error: { code: -32601, message: "no such method" } };
}

async function bodyOf(request) {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

if (isHttp) {
  const server = createServer(async (request, response) => {
    if (script === "exits-at-once") return request.socket.destroy();
    if (script === "no-server") return response.writeHead(200, { "content-type": "text/html" }).end("<p>Welcome</p>");
    if (request.method !== "POST") return response.writeHead(405).end();
    const reply = await answer(JSON.parse(await bodyOf(request)));
    if (reply === undefined) return response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", ...reply }));
  });
  server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port + "/mcp"));
} else {
  // Stays until it is killed.
  setInterval(() => {}, 1_000_000);
  const take = async (line) => {
    if (script === "no-server") return console.log("Welcome! Type help.");
    const reply = await answer(JSON.parse(line));
    if (reply !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", ...reply }));
  };
  // Not with node:readline, which ends a line at U+2028, a character that JSON may contain.
  let unread = "";
  process.stdin.setEncoding("utf8").on("data", (chunk) => {
    const lines = (unread + chunk).split("\\n");
    unread = lines.pop();
    lines.forEach(take);
  });
}
`;
