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
