import { type Log, type Publication, type PublishedOutcome, parseBoundedJson } from "@ambit/core/plugin";
import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from "@modelcontextprotocol/server";
import type { CallsInFlight } from "./calls-in-flight.js";
import { heartbeat } from "./heartbeat.js";
import type { Offer } from "./published-tools.js";

export interface ToolService {
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
