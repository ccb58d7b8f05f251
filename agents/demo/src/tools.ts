import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import type { CallToolResult, Client, Transport } from "@modelcontextprotocol/client";
import { failureText } from "./failure-text.js";

/** Time limit of one call without progress, in milliseconds. Progress restarts it. */
const callTimeout = 600_000;

/** A connected MCP server, with the names of its tools. */
interface ConnectedServer {
  readonly name: string;
  readonly client: Client;
  readonly tools: readonly string[];
}

/** The result for a session's servers. `failures` has one sentence per unusable server. */
export interface ToolSurvey {
  readonly tools: readonly string[];
  readonly failures: readonly string[];
}

/** A tool that a script names. */
export interface FoundTool {
  readonly server: string;
  readonly tool: string;
  call(
    input: Readonly<Record<string, unknown>>,
    toolCallId: string,
    signal: AbortSignal,
  ): Promise<CallToolResult>;
}

/**
 * The MCP servers of one session. Like real agents, it connects and lists the tools of every server once, whether or
 * not the script calls one, and continues without a server that fails.
 */
export class SessionTools {
  readonly #connections: Promise<PromiseSettledResult<ConnectedServer>[]>;
  readonly #servers: readonly McpServer[];
  readonly #closing = new AbortController();

  /** Starts connecting at once in the background: nothing is thrown here. */
  constructor(servers: readonly McpServer[]) {
    this.#servers = servers;
    this.#connections = Promise.allSettled(servers.map((server) => connected(server, this.#closing.signal)));
  }

  /** Waits for all servers. Tools are named `server/tool`. */
  async survey(): Promise<ToolSurvey> {
    const settled = await this.#connections;
    const failures = settled.flatMap((result, index) =>
      result.status === "rejected"
        ? [`MCP server '${this.#servers[index]?.name}' failed to start: ${failureText(result.reason)}`]
        : [],
    );
    const tools = succeeded(settled).flatMap((server) =>
      server.tools.map((tool) => `${server.name}/${tool}`),
    );
    return { tools, failures };
  }

  /**
   * Finds `tool` or `server/tool`. The second form also calls a tool that the server didn't list, so that a script can
   * test the server's response.
   *
   * @throws Error when no server, or more than one, offers the tool.
   */
  async find(name: string): Promise<FoundTool> {
    const servers = succeeded(await this.#connections);
    const offering = servers.filter((server) => server.tools.includes(name));
    const [only, another] = offering;
    if (only !== undefined && another === undefined) return foundTool(only, name);
    if (another !== undefined) {
      const choices = offering.map((server) => `${server.name}/${name}`).join(" or ");
      throw new Error(`more than one MCP server offers '${name}': use ${choices}`);
    }
    const named = servers.find((server) => name.startsWith(`${server.name}/`));
    if (named !== undefined) return foundTool(named, name.slice(named.name.length + 1));
    const offered = servers.flatMap((server) => server.tools.map((tool) => `${server.name}/${tool}`));
    throw new Error(`no MCP server offers '${name}'; offered: ${offered.join(", ") || "nothing"}`);
  }

  /** Closes the connections, including those that are still being opened. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the session was closed"));
    await Promise.all(succeeded(await this.#connections).map((server) => server.client.close()));
  }
}

function succeeded(results: readonly PromiseSettledResult<ConnectedServer>[]): readonly ConnectedServer[] {
  return results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}

function foundTool(server: ConnectedServer, tool: string): FoundTool {
  return {
    server: server.name,
    tool,
    call: (input, toolCallId, signal) =>
      server.client.callTool(
        // Lets the server match this call with the ACP tool call, as Codex does.
        { name: tool, arguments: input, _meta: { callId: toolCallId } },
        {
          signal,
          timeout: callTimeout,
          resetTimeoutOnProgress: true,
          // Without a listener no progress is requested, and a long call looks dead.
          onprogress: () => undefined,
        },
      ),
  };
}

async function connected(server: McpServer, signal: AbortSignal): Promise<ConnectedServer> {
  // Loaded here because it takes 50 ms, which a session without servers doesn't need.
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const overHttp = "type" in server && server.type === "http";
  const client = new Client(
    { name: "ambit-agent-demo", version: "0.1.0" },
    // Over stdio a probe for the newer protocol would start the server twice.
    { versionNegotiation: { mode: overHttp ? "auto" : "legacy" } },
  );
  let transport: Transport;
  if ("type" in server) {
    if (server.type !== "http")
      throw new Error(`transport '${server.type}' isn't supported: use http or stdio`);
    const { patientFetch } = await import("./http-fetch.js");
    transport = new StreamableHTTPClientTransport(new URL(server.url), {
      // The probe of `connect` ignores the given signal, so it is stopped here.
      fetch: (url, init) =>
        patientFetch(url, {
          ...init,
          signal: AbortSignal.any([signal, ...(init?.signal ? [init.signal] : [])]),
        }),
      requestInit: { headers: Object.fromEntries(server.headers.map(({ name, value }) => [name, value])) },
    });
  } else {
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    transport = new StdioClientTransport({
      command: server.command,
      args: [...server.args],
      env: Object.fromEntries(server.env.map(({ name, value }) => [name, value])),
      stderr: "ignore",
    });
  }
  try {
    await client.connect(transport, { signal });
    const { tools } = await client.listTools(undefined, { signal });
    return { name: server.name, client, tools: tools.map((tool) => tool.name) };
  } catch (error) {
    await client.close();
    throw error;
  }
}
