/**
 * Runs inside Pi, which loads this one file, so it imports nothing. It offers the tools of the run's MCP servers, asks
 * the client before each of Pi's own tools, and passes on a failure of the model, which the adapter hides.
 */

interface Server {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Content {
  readonly type: string;
  readonly text?: string;
}

interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: unknown;
}

interface ToolCallEvent {
  readonly toolName: string;
  readonly toolCallId: string;
  readonly input: unknown;
}

interface MessageEndEvent {
  readonly message: { readonly role: string; readonly stopReason?: string; readonly errorMessage?: string };
}

interface Context {
  readonly hasUI: boolean;
  readonly ui: {
    confirm(title: string, message: string): Promise<boolean>;
    notify(message: string, level: "error"): void;
  };
}

interface Tool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: unknown;
  execute(
    id: string,
    input: unknown,
    signal: AbortSignal | undefined,
  ): Promise<{ content: readonly Content[]; details: unknown }>;
}

/** The part of Pi's API that this extension uses. */
interface Pi {
  on(
    event: "tool_call",
    handler: (event: ToolCallEvent, context: Context) => Promise<{ block: true; reason: string } | undefined>,
  ): void;
  on(event: "session_start", handler: () => void): void;
  on(event: "message_end", handler: (event: MessageEndEvent, context: Context) => void): void;
  registerTool(tool: Tool): void;
  getActiveTools(): readonly string[];
  setActiveTools(names: readonly string[]): void;
}

interface Answer {
  readonly result?: {
    readonly tools?: readonly McpTool[];
    readonly nextCursor?: string;
    readonly content?: readonly Content[];
    readonly isError?: boolean;
    readonly structuredContent?: unknown;
  };
  readonly error?: { readonly message: string };
}

/** The tools that Pi offers by default. */
const ownTools = ["read", "bash", "edit", "write"];
const protocolVersion = "2025-06-18";
let requests = 0;

/** `fetch` takes almost twice as much CPU for a call. */
const { Agent, request: send } = process.getBuiltinModule("node:http");
const agent = new Agent({ keepAlive: true });

function post(server: Server, message: object, signal?: AbortSignal): Promise<string> {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": protocolVersion,
    ...server.headers,
  };
  return new Promise((resolve, reject) => {
    const sent = send(server.url, { method: "POST", agent, headers, signal }, (response) => {
      const { statusCode: status = 0 } = response;
      let text = "";
      response.setEncoding("utf8");
      response.on("error", reject);
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => {
        if (status >= 200 && status < 300) resolve(text);
        else reject(new Error(`The server ${server.name} of this run's tools answered ${status}.`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function request(server: Server, method: string, params: object, signal?: AbortSignal) {
  requests += 1;
  const id = requests;
  const text = await post(server, { id, method, params }, signal);
  for (const line of text.split("\n")) {
    const data = line.startsWith("data:") ? line.slice(5) : line;
    if (!data.trimStart().startsWith("{")) continue;
    const message: Answer & { readonly id?: number } = JSON.parse(data);
    if (message.id !== id) continue;
    if (message.error !== undefined) throw new Error(message.error.message);
    return message.result ?? {};
  }
  throw new Error(`The server ${server.name} of this run's tools gave no answer to ${method}.`);
}

/** None for a server that can't be reached: the driver fails a turn whose tools were never listed, with the reason. */
async function toolsOf(server: Server): Promise<readonly McpTool[]> {
  try {
    const clientInfo = { name: "ambit-pi", version: "1" };
    await request(server, "initialize", { protocolVersion, capabilities: {}, clientInfo });
  } catch (error) {
    console.error(`The server ${server.name} of this run's tools can't be reached: ${String(error)}`);
    return [];
  }
  await post(server, { method: "notifications/initialized" });
  const tools: McpTool[] = [];
  for (let cursor: string | undefined, pages = 0; pages < 100; pages += 1) {
    const page = await request(server, "tools/list", cursor === undefined ? {} : { cursor });
    tools.push(...(page.tools ?? []));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

function published(server: Server, { name, title, description, inputSchema }: McpTool): Tool {
  return {
    name,
    label: title ?? name,
    description: description ?? name,
    parameters: inputSchema,
    async execute(id, input, signal) {
      const params = { name, arguments: input ?? {}, _meta: { progressToken: id, callId: id } };
      const {
        content = [],
        isError,
        structuredContent,
      } = await request(server, "tools/call", params, signal);
      const shown = content.filter(({ type }) => type === "text" || type === "image");
      if (isError === true)
        throw new Error(shown.map(({ text = "" }) => text).join("\n") || "The tool failed.");
      return { content: shown, details: structuredContent };
    },
  };
}

export default async function ambit(pi: Pi): Promise<void> {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const file = process.env.AMBIT_PI_SERVERS;
  const servers: readonly Server[] = file === undefined ? [] : JSON.parse(readFileSync(file, "utf8"));
  // Their server asks for permission itself.
  const tools = new Set<string>();
  for (const server of servers) {
    for (const tool of await toolsOf(server)) {
      tools.add(tool.name);
      pi.registerTool(published(server, tool));
    }
  }
  pi.on("tool_call", async ({ toolName, toolCallId, input }, context) => {
    if (tools.has(toolName)) return undefined;
    if (!context.hasUI) return { block: true, reason: "There is no client to ask." };
    const isAllowed = await context.ui.confirm(JSON.stringify({ toolCallId, toolName, input }), "");
    return isAllowed ? undefined : { block: true, reason: "Permission was denied." };
  });
  // Pi was started without its own tools: they exist only if the handler above does.
  pi.on("session_start", () => pi.setActiveTools([...new Set([...ownTools, ...pi.getActiveTools()])]));
  pi.on("message_end", ({ message }, context) => {
    if (message.role !== "assistant" || message.stopReason !== "error") return;
    if (context.hasUI) context.ui.notify(message.errorMessage ?? "The model failed.", "error");
  });
}
