import { type Log, type Publication, type PublishedTool, parseBoundedJson } from "@ambit/core/plugin";
import {
  type CallToolRequest,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";

/** Names of removed tools that are remembered, for those who call one. */
const maxRemoved = 10_000;

/** A publication as an MCP server. It keeps no session: each HTTP request has a connection of its own. */
export class ToolServer {
  readonly #publication: Publication;
  readonly #heartbeatMs: number;
  readonly #log: Log;
  readonly #calls: CallsInFlight;
  /** What is offered to the agent now. */
  #tools: readonly Tool[];
  readonly #removed = new Set<string>();
  #isListed = false;

  constructor(publication: Publication, heartbeatMs: number, log: Log) {
    this.#publication = publication;
    this.#heartbeatMs = heartbeatMs;
    this.#log = log;
    this.#calls = new CallsInFlight(log);
    this.#tools = publication.tools.map(listedTool);
  }

  /** Whether the tools were listed. */
  get isListed(): boolean {
    return this.#isListed;
  }

  /** From now on these tools are offered. */
  change(tools: readonly PublishedTool[]): void {
    const before = this.#tools;
    this.#tools = tools.map(listedTool);
    for (const { name } of before)
      if (!this.#offers(name) && this.#removed.size < maxRemoved) this.#removed.add(name);
  }

  /** Aborts the open calls. */
  close(): void {
    this.#calls.close();
  }

  /**
   * Serves one HTTP request, of either generation of the protocol. It uses the SDK's low-level server, which passes JSON
   * Schemas on unchanged.
   */
  connection(): Server {
    const { name, watch } = this.#publication;
    const tools = watch === undefined ? {} : { listChanged: true };
    const server = new Server({ name, version: "1.0.0" }, { capabilities: { tools } });
    server.setRequestHandler("tools/list", () => {
      this.#isListed = true;
      return { tools: [...this.#tools] };
    });
    server.setNotificationHandler("notifications/cancelled", ({ params }) =>
      this.#calls.cancel(params.requestId),
    );
    server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
      const hangUp = () => {
        server
          .close()
          .catch((error: unknown) => this.#log.debug({ tool: params.name, error }, "a call wasn't hung up"));
      };
      return this.#call(params, mcpReq, hangUp);
    });
    return server;
  }

  /** @param hangUp ends the response without an answer. @throws ProtocolError for a tool that isn't offered */
  async #call(
    { name, arguments: input = {} }: CallToolRequest["params"],
    request: ServerContext["mcpReq"],
    hangUp: () => void,
  ): Promise<CallToolResult> {
    if (!this.#offers(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, this.#missing(name));
    using call = this.#calls.begin(request.id, request.signal, hangUp);
    using _beat = this.#reportProgress(name, request);
    const id = agentCallId(request._meta);
    try {
      const outcome = await this.#publication.call({ name, arguments: input, signal: call.signal, id });
      const { output, isError, isLate } = outcome;
      if (isLate === true) hangUp();
      return { content: [{ type: "text", text: output }], isError, ...structured(output) };
    } catch (error) {
      // A publication must not throw; if one does, the model gets a failure and the log the cause.
      this.#log.error({ tool: name, error }, "a tool call threw instead of returning an outcome");
      return { content: [{ type: "text", text: `Tool '${name}' failed in the runner.` }], isError: true };
    }
  }

  /** Progress for agents that request it: the stream's comments alone don't reset their timeouts. */
  #reportProgress(name: string, request: ServerContext["mcpReq"]): Disposable | undefined {
    const progressToken = request._meta?.progressToken;
    if (progressToken === undefined) return undefined;
    const message = `Tool '${name}' is still running`;
    return heartbeat(this.#heartbeatMs, (progress) => {
      request
        .notify({ method: "notifications/progress", params: { progressToken, progress, message } })
        .catch((error: unknown) =>
          this.#log.debug({ tool: name, error }, "progress could not be sent: the agent has disconnected"),
        );
    });
  }

  #offers(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  /** Why a tool that isn't offered can't be called, with some that can. */
  #missing(name: string): string {
    const shown = this.#tools.slice(0, 50).map((tool) => tool.name);
    const more = this.#tools.length - shown.length;
    const offered = `${shown.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}`;
    const why = this.#removed.has(name)
      ? `The server has removed the tool '${name}'`
      : `There is no tool '${name}'`;
    return `${why}. Offered: ${offered}.`;
  }
}

/**
 * A tool in MCP's form. Copied field by field: the run's value may contain more than its type declares, such as a
 * callback's name or a code tool's environment, and none of that may reach the sandbox.
 */
function listedTool({ name, description, inputSchema, readOnly }: PublishedTool): Tool {
  return {
    name,
    description,
    // MCP requires the type; clients drop the whole list for one tool without it. Arguments are objects anyway.
    inputSchema: { ...inputSchema, type: "object" },
    ...(readOnly === undefined ? {} : { annotations: { readOnlyHint: readOnly } }),
    // Otherwise Claude hides tools behind a search that its model must use first.
    _meta: { "anthropic/alwaysLoad": true },
  };
}

/** The agent's own id of the call, which it also uses over ACP: Claude's spelling, and that of Codex and of Pi's extension. */
function agentCallId(meta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const id = meta?.["claudecode/toolUseId"] ?? meta?.callId;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/**
 * If structured content is missing, Gemini CLI parses a text that happens to be JSON as such, and fails the call if
 * that isn't an object. So a number, a list or a JSON string gets structured content, in the form that other servers
 * use.
 */
function structured(output: string): { structuredContent?: { result: unknown } } {
  if (!/^\s*["[\d\-tfn]/.test(output)) return {};
  try {
    const result = parseBoundedJson(output);
    return { structuredContent: { result } };
  } catch {
    // Not JSON after all, or too much of it: it stays plain text.
    return {};
  }
}

/** A call that is being executed. Disposed when it is answered. */
interface CallInFlight extends Disposable {
  /** Aborts when the agent cancels the call, leaves, or the publication is closed. */
  readonly signal: AbortSignal;
}

interface OpenCall {
  readonly controller: AbortController;
  hangUp(): void;
}

/**
 * The calls of one publication, by the agent's request id. The endpoint keeps no session, so a cancellation arrives
 * as a separate request and must find its call here.
 */
class CallsInFlight {
  readonly #byId = new Map<string | number, Set<OpenCall>>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * @param disconnected aborts when the agent's connection ends.
   * @param hangUp ends the response to the call without an answer.
   */
  begin(id: string | number, disconnected: AbortSignal, hangUp: () => void): CallInFlight {
    const controller = new AbortController();
    const open = { controller, hangUp };
    const leave = () => controller.abort(disconnected.reason);
    if (disconnected.aborted) leave();
    disconnected.addEventListener("abort", leave, { once: true });
    const same = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, same.add(open));
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        disconnected.removeEventListener("abort", leave);
        same.delete(open);
        if (same.size === 0) this.#byId.delete(id);
      },
    };
  }

  /**
   * Some agents cancel an answered call: an unknown id is ignored. A cancelled call gets no answer: some agents take one
   * for a fault of the connection, and forget the server's tools (Qwen Code).
   */
  cancel(id: string | number | undefined): void {
    if (id === undefined) return;
    const [only, another] = this.#byId.get(id) ?? [];
    if (another !== undefined) {
      // Two connections of the agent may use the same ids; ending the wrong call would be worse than ending none.
      this.#log.debug({ id }, "a cancellation names more than one call and is ignored");
      return;
    }
    only?.hangUp();
    only?.controller.abort(new Error("the agent cancelled the call"));
  }

  close(): void {
    for (const calls of this.#byId.values()) {
      for (const { controller } of calls) controller.abort(new Error("the run no longer serves its tools"));
    }
  }
}

/** Calls back regularly until it is disposed; it doesn't keep the process alive. */
export function heartbeat(milliseconds: number, beat: (count: number) => void): Disposable {
  let count = 0;
  const timer = setInterval(() => {
    count += 1;
    beat(count);
  }, milliseconds);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
