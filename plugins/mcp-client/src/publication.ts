import {
  AmbitError,
  HarnessFailed,
  limits,
  type McpServer,
  messageOf,
  type Publication,
  type PublishedCall,
  type PublishedOutcome,
  type PublishedTool,
  type Scope,
  type ToolSourceScope,
  unlessAborted,
} from "@ambit/core/plugin";
import {
  Client,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  ProtocolError,
  ProtocolErrorCode,
  SdkHttpError,
  type Tool,
} from "@modelcontextprotocol/client";
import { type Channel, type Connection, Connections } from "./connections.js";
import { describeCallFailure, failureOf, quotedOutput } from "./failure.js";
import { asksForHeaders } from "./reduced-message.js";
import { ToolList } from "./tool-list.js";

const identity = { name: "ambit", version: "0.1.0" };
/**
 * A server's schema of its results isn't checked: the result reaches the model as text, and a schema from outside could
 * block the event loop indefinitely.
 */
const unchecked: jsonSchemaValidator = {
  getValidator:
    <Data>(): JsonSchemaValidator<Data> =>
    (input) => ({ valid: true, data: input as Data, errorMessage: undefined }),
};

/** Pages of a server's list of tools. */
const maxPages = 20;

/** Milliseconds that a call's result waits for the list that the call has changed. */
const changeMs = 5_000;

/** Milliseconds without progress; the run's own limit for a tool call ends it earlier. */
const silenceMs = 600_000;

/**
 * Connects and lists the tools that the request's policy allows. The publication's calls connect again where the server
 * was lost.
 *
 * @throws HarnessFailed when the server can't be reached: a run must not silently continue without its tools.
 */
export async function publicationOf(
  server: McpServer,
  openChannel: () => Promise<Channel>,
  scope: Scope & Pick<ToolSourceScope, "log">,
): Promise<Publication> {
  const list = new ToolList(server.name, scope.log);
  const connections = new Connections(
    openChannel,
    () => clientFor(server),
    scope,
    (opened) =>
      followChanges(opened, () => list.changed(() => relisted(server, opened, scope.signal)), scope),
  );
  let connection: Connection | undefined;
  try {
    connection = await connections.open();
    list.tools = await listedTools(server, connection, scope.signal);
    connection.isTrial = false;
    return {
      name: server.name,
      tools: list.tools,
      ...(announcesChanges(connection) ? { watch: (changed) => list.watch(changed) } : {}),
      call: async (call) => {
        const outcome = await callTool(connections, server, list, call);
        // What a call has added is there when the model reads its result.
        const patience = AbortSignal.any([call.signal, AbortSignal.timeout(changeMs)]);
        await unlessAborted(patience, () => list.current()).catch(() => {});
        return outcome;
      },
    };
  } catch (error) {
    if (scope.signal.aborted) throw scope.signal.reason;
    if (error instanceof AmbitError) throw error;
    throw harnessFailure(server, error, connection);
  }
}

/** Whether the server says when its list of tools changes. */
function announcesChanges({ client }: Connection): boolean {
  return client.getServerCapabilities()?.tools?.listChanged === true;
}

/** Listens to the server's changes of its list, in either generation of the protocol. */
function followChanges(
  connection: Connection,
  changed: () => void,
  { log, signal }: Scope & Pick<ToolSourceScope, "log">,
): void {
  if (!announcesChanges(connection)) return;
  const { client } = connection;
  client.setNotificationHandler("notifications/tools/list_changed", changed);
  if (client.getProtocolEra() !== "modern") return;
  client.listen({ toolsListChanged: true }, { signal }).catch((error: unknown) => {
    log.debug({ reason: messageOf(error) }, "an MCP server doesn't let its changes be listened to");
  });
}

/** The list as it is now. @throws the reason why it can't be listed */
async function relisted(
  server: McpServer,
  connection: Connection,
  signal: AbortSignal,
): Promise<readonly PublishedTool[]> {
  const { guard } = connection;
  guard.list();
  try {
    return await listedTools(server, connection, signal);
  } finally {
    guard.listed();
  }
}

function clientFor({ connection }: McpServer): Client {
  const client = new Client(identity, {
    jsonSchemaValidator: unchecked,
    listMaxPages: maxPages,
    versionNegotiation: { mode: connection.type === "http" ? "auto" : "legacy" },
  });
  // What a server asks for reaches its tool's result: many pass the message on.
  client.fallbackRequestHandler = async ({ method }) => {
    throw new ProtocolError(
      ProtocolErrorCode.MethodNotFound,
      `Ambit doesn't offer '${method}' to MCP servers: a tool has to work with its arguments alone.`,
    );
  };
  return client;
}

async function listedTools(
  server: McpServer,
  { client, guard }: Connection,
  signal: AbortSignal,
): Promise<readonly PublishedTool[]> {
  // The SDK would report that on the output of this process.
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const { tools: kept } = await client.listTools(undefined, { signal, cacheMode: "bypass" });
  const keptNames = new Set(kept.map(({ name }) => name));
  const included = guard
    .listed()
    .filter((tool) => isIncluded(server, tool.name) && (keptNames.has(tool.name) || !asksForHeaders(tool)));
  if (included.length > limits.tools) {
    throw new HarnessFailed(
      `MCP server '${server.name}' lists ${included.length.toLocaleString("en")} tools, and a run has at most ${limits.tools.toLocaleString("en")}: name those that it needs in the server's policy.tools.`,
    );
  }
  return included;
}

/** A status of the server, where the runner's event looks for it. */
class AnsweredStatus extends Error {
  override readonly name = "AnsweredStatus";

  constructor(
    readonly status: number,
    cause: unknown,
  ) {
    super(`HTTP ${status}`, { cause });
  }
}

function harnessFailure(
  server: McpServer,
  error: unknown,
  connection: Connection | undefined,
): HarnessFailed {
  const { cause, output } = failureOf(error);
  const why = connection?.guard.refusal?.message ?? cause;
  return new HarnessFailed(
    `MCP server '${server.name}' ${why.replace(/\.$/, "")}, so its tools would be missing.${quotedOutput(output)}`,
    { cause: error instanceof SdkHttpError ? new AnsweredStatus(error.status, error) : error },
  );
}

/** Whether the request's policy allows a tool. Pure. */
export function isIncluded({ policy }: McpServer, tool: string): boolean {
  if (policy?.tools === undefined || policy.tools.mode === "all") return true;
  return policy.tools.names?.includes(tool) ?? false;
}

/** @param listed the tools that the agent was given. A call may name any other. */
async function callTool(
  connections: Connections,
  server: McpServer,
  listed: Pick<ToolList, "find">,
  call: PublishedCall,
): Promise<PublishedOutcome> {
  const tool = listed.find(call.name);
  if (tool === undefined) return { output: `There is no tool '${call.name}'.`, isError: true };
  try {
    return await connections.request(call.signal, async ({ client, guard }) => {
      const result = await client.callTool(
        { name: call.name, arguments: { ...call.arguments }, ...metaOf(call) },
        {
          signal: call.signal,
          timeout: silenceMs,
          resetTimeoutOnProgress: true,
          onprogress: () => undefined,
          // Otherwise the client lists the server's tools again where the server asks for it, without the bounds above.
          toolDefinition: definitionOf(tool),
        },
      );
      const [kept] = result.content;
      const output = kept?.type === "text" ? guard.outputOf(kept.text) : "";
      if (output === undefined) throw new Error("it sent more results than were asked for");
      return { output, isError: result.isError === true };
    });
  } catch (error) {
    return { output: describeCallFailure(server.name, call, error), isError: true };
  }
}

/** MCP reserves these keys of a request's `_meta` for W3C Trace Context. Pure. */
function metaOf({ traceparent, tracestate }: PublishedCall): { readonly _meta?: Record<string, string> } {
  if (traceparent === undefined) return {};
  return { _meta: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) } };
}

/** What the SDK reads of a tool: the headers that it asks for. Pure. */
function definitionOf(tool: PublishedTool): Tool {
  const schema = asksForHeaders(tool) ? tool.inputSchema : {};
  return { name: tool.name, inputSchema: { ...schema, type: "object" } };
}
