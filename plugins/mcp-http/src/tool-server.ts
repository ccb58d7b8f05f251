import {
  type Log,
  type Publication,
  type PublishedOutcome,
  type PublishedTool,
  parseBoundedJson,
} from "@ambit/core/plugin";
import {
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";
import type { CallsInFlight } from "./calls-in-flight.js";

interface ToolService {
  readonly publication: Publication;
  readonly offer: Offer;
  readonly calls: CallsInFlight;
  readonly heartbeatMs: number;
  readonly log: Log;
  /** Called when the tools are listed. */
  onListed(): void;
}

/**
 * An MCP server for one HTTP request, of either generation of the protocol. It uses the SDK's low-level server, which
 * passes JSON Schemas on unchanged.
 */
export function toolServer(service: ToolService): Server {
  const { publication, offer, calls } = service;
  const tools = publication.watch === undefined ? {} : { listChanged: true };
  const server = new Server({ name: publication.name, version: "1.0.0" }, { capabilities: { tools } });
  server.setRequestHandler("tools/list", () => {
    service.onListed();
    return { tools: [...offer.tools] };
  });
  server.setNotificationHandler("notifications/cancelled", ({ params }) => calls.cancel(params.requestId));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const { name } = params;
    if (!offer.has(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, offer.missing(name));
    const hangUp = () => {
      server
        .close()
        .catch((error: unknown) => service.log.debug({ tool: name, error }, "a call wasn't hung up"));
    };
    using call = calls.begin(mcpReq.id, mcpReq.signal, hangUp);
    using _beat = signsOfLife(service, name, mcpReq);
    const id = agentCallId(mcpReq._meta);
    const { output, isError, isLate } = await outcomeOf(service, {
      name,
      arguments: params.arguments ?? {},
      signal: call.signal,
      id,
    });
    if (isLate === true) hangUp();
    return { content: [{ type: "text", text: output }], isError, ...structured(output) };
  });
  return server;
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

/** A publication must not throw; if one does, the model gets a failure and the log the cause. */
async function outcomeOf(
  { publication, log }: ToolService,
  call: Parameters<Publication["call"]>[0],
): Promise<PublishedOutcome> {
  try {
    return await publication.call(call);
  } catch (error) {
    log.error({ tool: call.name, error }, "a tool call threw instead of returning an outcome");
    return { output: `Tool '${call.name}' failed in the runner.`, isError: true };
  }
}

/** Progress for agents that request it: the stream's comments alone don't reset their timeouts. */
function signsOfLife(
  { heartbeatMs, log }: ToolService,
  name: string,
  mcpReq: ServerContext["mcpReq"],
): Disposable {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return { [Symbol.dispose]: () => undefined };
  return heartbeat(heartbeatMs, (progress) => {
    mcpReq
      .notify({
        method: "notifications/progress",
        params: { progressToken, progress, message: `Tool '${name}' is still running` },
      })
      .catch((error: unknown) =>
        log.debug({ tool: name, error }, "progress could not be sent: the agent has disconnected"),
      );
  });
}

/** The agent's own id of the call, which it also uses over ACP: Claude's spelling, and that of Codex and of Pi's extension. */
function agentCallId(meta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const id = meta?.["claudecode/toolUseId"] ?? meta?.callId;
  return typeof id === "string" && id !== "" ? id : undefined;
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

/** Names of removed tools that are remembered, for those who call one. */
const maxRemoved = 10_000;

/** What is offered to the agent, which may change. */
export class Offer {
  #tools: readonly Tool[];
  readonly #removed = new Set<string>();

  constructor(tools: readonly PublishedTool[]) {
    this.#tools = tools.map(listedTool);
  }

  get tools(): readonly Tool[] {
    return this.#tools;
  }

  has(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  change(tools: readonly PublishedTool[]): void {
    const before = this.#tools;
    this.#tools = tools.map(listedTool);
    for (const { name } of before)
      if (!this.has(name) && this.#removed.size < maxRemoved) this.#removed.add(name);
  }

  /** Why a tool that isn't offered can't be called, with some that can. */
  missing(name: string): string {
    const shown = this.#tools.slice(0, 50).map((tool) => tool.name);
    const more = this.#tools.length - shown.length;
    const offered = `${shown.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}`;
    const why = this.#removed.has(name)
      ? `The server has removed the tool '${name}'`
      : `There is no tool '${name}'`;
    return `${why}. Offered: ${offered}.`;
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
