/** The wire formats that the server speaks. */
export type ApiName = "anthropic" | "openai-chat" | "openai-responses" | "gemini";

/** A tool that the agent offers to the model with a request. */
export interface OfferedTool {
  /** The name for a call, without the namespace. */
  readonly name: string;
  /** Codex groups the tools of an MCP server in a namespace, such as `mcp__ambit`. */
  readonly namespace?: string;
  /**
   * `custom` takes free text, `local_shell` a command line, and `tool_search` finds tools that the agent hasn't offered
   * yet. The three exist in OpenAI's Responses API only.
   */
  readonly form: "function" | "custom" | "local_shell" | "tool_search";
  /** JSON Schema of the input; undefined if this kind of tool has none. */
  readonly inputSchema?: unknown;
}

/** The result of a tool call from an earlier response, as the agent reports it. */
export interface ToolResult {
  readonly callId: string;
  /** Texts of the result joined by newlines; anything that isn't text, as JSON. */
  readonly text: string;
}

/** One request for a response, independent of its wire format: the input of a script. */
export interface ModelTurn {
  readonly api: ApiName;
  readonly model: string;
  readonly streamed: boolean;
  readonly tools: readonly OfferedTool[];
  /** The last text part of the user, without context that the agent added; "" if there is none. */
  readonly lastUserText: string;
  /** In order; only those after `lastUserText`. */
  readonly toolResults: readonly ToolResult[];
}

/** A tool's name in tests and markers, with its namespace: `mcp__ambit__lookup`. */
export function qualifiedName(tool: OfferedTool): string {
  if (tool.namespace === undefined) return tool.name;
  const separator = tool.namespace.endsWith("__") ? "" : "__";
  return `${tool.namespace}${separator}${tool.name}`;
}
