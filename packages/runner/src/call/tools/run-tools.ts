import type { AcceptedPlan } from "@ambit/core";
import type { McpServer, RunRequest, ToolSpec } from "@ambit/core/contract";
import type { ToolExecutor } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { tokens } from "../../tokens.js";

/** The tools and MCP servers of a run's request by name, and the executors of its plan by kind. */
@injectable()
export class RunTools {
  readonly tools: ReadonlyMap<string, ToolSpec>;
  readonly servers: ReadonlyMap<string, McpServer>;
  readonly executors: ReadonlyMap<string, ToolExecutor>;

  constructor(
    @inject(tokens.request) { customTools, mcpServers }: RunRequest,
    @inject(tokens.plan) { executors }: AcceptedPlan,
  ) {
    this.tools = new Map(customTools.map((tool) => [tool.name, tool]));
    this.servers = new Map(mcpServers.map((server) => [server.name, server]));
    this.executors = new Map(executors.map(({ probed: { actor } }) => [actor.kind, actor]));
  }

  /** Whether the user fulfils the tool's calls. */
  isByCaller(tool: ToolSpec | undefined): boolean {
    return tool !== undefined && this.executors.get(tool.kind)?.site === "caller";
  }
}
