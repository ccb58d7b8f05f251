import type { Publication, PublishedCall, PublishedOutcome } from "@ambit/core/plugin";

/** Executes the calls of a run's agent. */
export interface RoutedCalls {
  /** A server publishes these tools from now on. */
  learn(published: Iterable<string>): void;
  /** A call of one of the request's own tools. */
  callTool(made: PublishedCall): Promise<PublishedOutcome>;
  /** A call of a user's MCP server. */
  callMcpTool(publication: Publication, made: PublishedCall): Promise<PublishedOutcome>;
}

/**
 * Passes the calls of a published tool to the run that has the agent now. Between runs nothing is executed,
 * whatever a kept agent does.
 */
export class CallRouter {
  current: RoutedCalls | undefined;

  async route(step: (calls: RoutedCalls) => Promise<PublishedOutcome>): Promise<PublishedOutcome> {
    const { current } = this;
    if (current === undefined) return { output: "No run is active: nothing was executed.", isError: true };
    return step(current);
  }
}
