import {
  HarnessFailed,
  limits,
  type McpServer,
  messageOf,
  type Publication,
  type PublishedCall,
  type PublishedOutcome,
  type PublishedTool,
  type Scope,
  wholeWords,
} from "@ambit/core/plugin";
import {
  Client,
  type JsonSchemaValidator,
  type jsonSchemaValidator,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client";
import type { MessageGuard } from "./message-guard.js";
import { asksForHeaders } from "./reduced-message.js";

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

/** Milliseconds without progress; the run's own limit for a tool call ends it earlier. */
const silenceMs = 600_000;

/**
 * Connects and lists the tools that the request's policy allows.
 * @throws HarnessFailed when the server can't be reached: a run must not silently continue without its tools.
 */
export async function publicationOf(
  server: McpServer,
  transport: Transport,
  guard: MessageGuard,
  scope: Scope,
): Promise<Publication> {
  // After that, nothing deferred would be closed any more.
  scope.signal.throwIfAborted();
  const client = new Client(identity, {
    jsonSchemaValidator: unchecked,
    listMaxPages: maxPages,
    versionNegotiation: { mode: server.connection.type === "http" ? "auto" : "legacy" },
  });
  scope.defer(() => client.close());
  try {
    await client.connect(transport, { signal: scope.signal });
    const { tools: kept } = await client.listTools(undefined, { signal: scope.signal });
    const keptNames = new Set(kept.map(({ name }) => name));
    const included = guard
      .listed()
      .filter((tool) => isIncluded(server, tool.name) && (keptNames.has(tool.name) || !asksForHeaders(tool)));
    if (included.length > limits.tools) {
      throw new HarnessFailed(
        `MCP server '${server.name}' lists ${included.length.toLocaleString("en")} tools, and a run has at most ${limits.tools.toLocaleString("en")}: name those that it needs in the server's policy.tools.`,
      );
    }
    const byName = new Map(included.map((tool) => [tool.name, tool]));
    return {
      name: server.name,
      tools: included,
      call: (call) => callTool(client, server, guard, byName, call),
    };
  } catch (error) {
    if (scope.signal.aborted) throw scope.signal.reason;
    if (error instanceof HarnessFailed) throw error;
    const why = guard.refusal?.message ?? "could not be reached";
    throw new HarnessFailed(`MCP server '${server.name}' ${why}, so its tools would be missing.`, {
      cause: error,
    });
  }
}

/** Whether the request's policy allows a tool. Pure. */
export function isIncluded({ policy }: McpServer, tool: string): boolean {
  if (policy?.tools === undefined || policy.tools.mode === "all") return true;
  return policy.tools.names?.includes(tool) ?? false;
}

/** @param listed the tools that the run was given. A call may name any other. */
async function callTool(
  client: Client,
  server: McpServer,
  guard: MessageGuard,
  listed: ReadonlyMap<string, PublishedTool>,
  call: PublishedCall,
): Promise<PublishedOutcome> {
  const tool = listed.get(call.name);
  if (tool === undefined) return { output: `There is no tool '${call.name}'.`, isError: true };
  try {
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
  } catch (error) {
    if (call.signal.aborted) return { output: `The call of '${call.name}' was cancelled.`, isError: true };
    const reason = messageOf(error);
    return { output: `MCP server '${server.name}' failed: ${wholeWords(reason, 1_000)}`, isError: true };
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
