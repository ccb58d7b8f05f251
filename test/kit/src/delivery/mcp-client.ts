import type { PublishedServer } from "@ambit/core/plugin";
import { z } from "zod";

const listSchema = z.object({
  tools: z.array(
    z.object({ name: z.string(), description: z.string().optional(), inputSchema: z.unknown() }),
  ),
});
const callSchema = z.object({
  content: z.array(z.object({ text: z.string().default("") })),
  isError: z.boolean().default(false),
});

/** A tool as an agent sees it. */
export type SeenTool = z.infer<typeof listSchema>["tools"][number];

export interface SeenResult {
  readonly text: string;
  readonly isError: boolean;
}

export interface RpcAnswer {
  readonly status: number;
  readonly message: { readonly result?: unknown; readonly error?: { readonly message: string } } | undefined;
}

const version = "2025-06-18";

/** The part of an MCP client (Streamable HTTP) that an agent needs, and everything it received, to be searched. */
export class McpClient {
  readonly #server: Pick<PublishedServer, "url" | "headers">;
  readonly #received: string[] = [];
  #session: string | undefined;
  #id = 0;

  constructor(server: Pick<PublishedServer, "url" | "headers">) {
    this.#server = server;
  }

  /** Everything that was sent over the wire: headers and bodies. */
  get received(): string {
    return this.#received.join("\n");
  }

  async open(): Promise<RpcAnswer> {
    const clientInfo = { name: "ambit-testkit", version: "1" };
    const answer = await this.ask("initialize", { protocolVersion: version, capabilities: {}, clientInfo });
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return answer;
  }

  async list(): Promise<readonly SeenTool[]> {
    const { message } = await this.ask("tools/list", {});
    return listSchema.parse(message?.result).tools;
  }

  async call(name: string, args: unknown, signal?: AbortSignal): Promise<SeenResult> {
    const { message } = await this.ask("tools/call", { name, arguments: args }, signal);
    if (message?.error !== undefined) return { text: message.error.message, isError: true };
    const { content, isError } = callSchema.parse(message?.result);
    return { text: content.map(({ text }) => text).join(""), isError };
  }

  async ask(method: string, params: unknown, signal?: AbortSignal): Promise<RpcAnswer> {
    this.#id += 1;
    return this.#post({ jsonrpc: "2.0", id: this.#id, method, params }, signal);
  }

  async #post(body: object, signal?: AbortSignal): Promise<RpcAnswer> {
    const response = await fetch(this.#server.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": version,
        ...(this.#session === undefined ? {} : { "mcp-session-id": this.#session }),
        ...this.#server.headers,
      },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    this.#session ??= response.headers.get("mcp-session-id") ?? undefined;
    const text = await response.text();
    this.#received.push(JSON.stringify(Object.fromEntries(response.headers)), text);
    return { status: response.status, message: answerIn(text) };
  }
}

/** The response in a JSON body, or the last one in a stream of events. */
function answerIn(text: string): RpcAnswer["message"] {
  const lines = text.split("\n").flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []));
  const candidates = lines.length > 0 ? lines : [text];
  const parsed = candidates.flatMap((one) => {
    try {
      return [JSON.parse(one)];
    } catch {
      return []; // A body that isn't JSON is no response: refusals may be plain text.
    }
  });
  return parsed.findLast((one) => "result" in one || "error" in one);
}
