import type { PublishedTool } from "@ambit/core/plugin";
import type { Tool } from "@modelcontextprotocol/server";

/**
 * A tool in MCP's form. Copied field by field: the run's value may contain more than its type declares, such as a
 * callback's name or a code tool's environment, and none of that may reach the sandbox.
 */
export function listedTool({ name, description, inputSchema, readOnly }: PublishedTool): Tool {
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

/** For an agent that calls an unknown tool: some of the known ones. */
export function offered(tools: readonly Tool[]): string {
  const shown = tools.slice(0, 50).map(({ name }) => name);
  const more = tools.length - shown.length;
  return `${shown.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}`;
}
