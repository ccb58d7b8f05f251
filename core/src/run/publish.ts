import { HarnessFailed } from "../errors.js";
import type { Publication, PublishedServer, Scope } from "../plugin/index.js";
import type { RunContext } from "./run-context.js";
import type { ToolCalls } from "./tool-calls.js";

/** Connects the user's MCP servers and publishes every tool of the run to the agent. */
export async function publish(run: RunContext, toolCalls: ToolCalls): Promise<readonly PublishedServer[]> {
  const { plan, request, scope, log } = run;
  const delivery = plan.delivery?.actor;
  if (delivery === undefined) return [];
  const shared: Scope & { sandbox: ReturnType<RunContext["sandbox"]>; log: RunContext["log"] } = {
    signal: scope.signal,
    defer: (close) => scope.defer(close),
    sandbox: run.sandbox(),
    log,
  };
  const connections = plan.toolSources.flatMap(({ probed: { actor }, uses }) =>
    uses.map(async (server) =>
      toolCalls.guarded(await actor.connect(server, { ...shared, boundary: plan.boundary })),
    ),
  );
  const publications: Publication[] = await Promise.all(connections);
  if (request.customTools.length > 0) publications.unshift(toolCalls.publication());
  return Promise.all(publications.map((publication) => delivery.publish(publication, shared)));
}

/** An agent that couldn't reach its tools says nothing of it: it runs without them. We say it. */
export function requireListed(servers: readonly PublishedServer[]): void {
  const missed = servers.filter((server) => !server.listed()).map(({ name }) => `'${name}'`);
  if (missed.length === 0) return;
  throw new HarnessFailed(
    `The agent ended its turn without ever asking for the tools of ${missed.join(", ")}: it can't have used them.`,
  );
}
