/** The wire formats that the server speaks. */
export type ApiName = "anthropic" | "openai-chat" | "openai-responses" | "gemini";

/** A tool that the agent offers to the model with a request. */
export interface OfferedTool {
  /** As the model has to call it, without the namespace. */
  readonly name: string;
  /** Codex groups the tools of an MCP server under one, such as `mcp__ambit`. */
  readonly namespace?: string;
  /**
   * `custom` takes free text, `local_shell` a command line, and `tool_search` finds tools that the agent hasn't offered
   * yet. The three exist in OpenAI's Responses API only.
   */
  readonly form: "function" | "custom" | "local_shell" | "tool_search";
  /** JSON Schema of the input; undefined where the form has none. */
  readonly inputSchema?: unknown;
}

/** What the agent reports of a tool call that an earlier answer asked for. */
export interface ToolResult {
  readonly callId: string;
  /** Texts of the result joined by newlines; anything that isn't text, as JSON. */
  readonly text: string;
}

/** One request for an answer, whatever the wire format: all that a script can look at. */
export interface ModelTurn {
  readonly api: ApiName;
  readonly model: string;
  readonly streamed: boolean;
  readonly tools: readonly OfferedTool[];
  /** The last piece of text from the user that isn't context added by the agent; "" when there is none. */
  readonly lastUserText: string;
  /** In order; only those that came after `lastUserText`. */
  readonly toolResults: readonly ToolResult[];
}

/** The name under which tests and markers know a tool: `mcp__ambit__lookup`, namespace included. */
export function qualifiedName(tool: OfferedTool): string {
  if (tool.namespace === undefined) return tool.name;
  const separator = tool.namespace.endsWith("__") ? "" : "__";
  return `${tool.namespace}${separator}${tool.name}`;
}
