import type { PublishedTool } from "@ambit/core/plugin";
import type { Tool } from "@modelcontextprotocol/server";

/**
 * A tool as MCP lists it. Field by field: what a run hands over may carry more than its type says, such as a
 * callback's name or a code tool's environment, and nothing of that may reach the sandbox.
 */
export function listedTool({ name, description, inputSchema, readOnly }: PublishedTool): Tool {
  return {
    name,
    ...(description === undefined ? {} : { description }),
    // MCP demands the type; one tool without it makes clients drop the whole list. Arguments are objects anyway.
    inputSchema: { ...inputSchema, type: "object" },
    ...(readOnly === undefined ? {} : { annotations: { readOnlyHint: readOnly } }),
    // Claude otherwise hides tools behind a search that its model must think of first.
    _meta: { "anthropic/alwaysLoad": true },
  };
}

/** For an agent that calls what isn't there: says what is, within reason. */
export function offered(tools: readonly Tool[]): string {
  const shown = tools.slice(0, 50).map(({ name }) => name);
  const more = tools.length - shown.length;
  return `${shown.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}`;
}
