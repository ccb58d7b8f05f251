import {
  type AcceptedPlan,
  checkedReturn,
  HarnessFailed,
  inOffer,
  outsideOffers,
  pluginReturns,
} from "@ambit/core";
import type { RunRequest, ToolSpec } from "@ambit/core/contract";
import type {
  DeliveryScope,
  Log,
  Publication,
  PublishedCall,
  PublishedServer,
  PublishedTool,
  Sandbox,
  Scope,
} from "@ambit/core/plugin";
import type { CallRouter } from "../../call/call-router.js";
import type { ResultSecrets } from "../../call/tools/result-secrets.js";
import type { RunEvents } from "../../events/run-events.js";
import { callPlugin } from "../../lifetime/plugin-error.js";
import type { PlannedRun } from "../../tokens.js";
import { mcpServerFailed } from "./mcp-failure.js";

/** The name under which the request's own tools are published; the contract keeps it from MCP servers. */
export const ownPublication = "ambit";

/** Names of the servers that `publish` will return, in its order. Pure. */
export function serverNamesOf(
  { customTools }: Pick<RunRequest, "customTools">,
  { delivery, toolSources }: Pick<AcceptedPlan, "delivery" | "toolSources">,
): readonly string[] {
  if (delivery === undefined) return [];
  const ofSources = toolSources.flatMap(({ uses }) => uses.map(({ name }) => name));
  return customTools.length > 0 ? [ownPublication, ...ofSources] : ofSources;
}

/** What publishing needs of its run. */
export interface PublishingRun {
  readonly run: PlannedRun;
  readonly log: Log;
  readonly events: Pick<RunEvents, "emit" | "warn">;
  readonly secrets: ResultSecrets;
}

/** Step 4: connects the user's MCP servers and publishes every tool to the agent, for as long as `scope` lives. */
export async function publishTools(
  publishing: PublishingRun,
  sandbox: Sandbox,
  scope: Scope,
  router: CallRouter,
): Promise<{ readonly servers: readonly PublishedServer[]; readonly toolNames: readonly string[] }> {
  const { log, events } = publishing;
  const { plan, request } = publishing.run;
  const delivery = plan.delivery?.actor;
  if (delivery === undefined) return { servers: [], toolNames: [] };
  const shared: DeliveryScope = {
    signal: scope.signal,
    defer: (close) => scope.defer(close),
    sandbox,
    log,
  };
  const connecting = plan.toolSources.flatMap(({ probed: { actor }, uses }) =>
    uses.map(async (server) => {
      const connecting = callPlugin(actor, "connect", pluginReturns.publication, () =>
        actor.connect(server, { ...shared, boundary: plan.boundary }),
      );
      const connected = await connecting.catch((error: unknown) => {
        if (!scope.signal.aborted) events.emit(mcpServerFailed(server.name, error));
        throw error;
      });
      const publication: Publication = {
        ...connected,
        call: async (made) => {
          const outcome: unknown = await inOffer(actor, () => connected.call(made));
          return checkedReturn(actor, "call", pluginReturns.publishedOutcome, outcome);
        },
      };
      const call = (made: PublishedCall) =>
        outsideOffers(() => router.route((calls) => calls.callMcpTool(publication, made)));
      return { ...publication, tools: withoutSecrets(publication, publishing), call };
    }),
  );
  const publications: Publication[] = await Promise.all(connecting);
  if (request.customTools.length > 0) {
    const call = (made: PublishedCall) => outsideOffers(() => router.route((calls) => calls.callTool(made)));
    publications.unshift({ name: ownPublication, tools: request.customTools.map(published), call });
  }
  const servers = await Promise.all(
    publications.map((publication) =>
      callPlugin(delivery, "publish", pluginReturns.server, () => delivery.publish(publication, shared)),
    ),
  );
  return { servers, toolNames: publications.flatMap(({ tools }) => tools.map(({ name }) => name)) };
}

/** The tools of a publication without the credentials that their texts repeat. */
function withoutSecrets(
  { name, tools }: Publication,
  { secrets, events }: PublishingRun,
): readonly PublishedTool[] {
  const hidden = secrets.hideInTools(tools);
  const usable = hidden.filter((tool) => tool !== undefined);
  if (usable.length < tools.length) {
    const message = `The server '${name}' lists tools with a credential of this request in their names. They are left out: ${tools.length - usable.length}.`;
    events.warn({ path: "mcpServers", message });
  }
  return usable;
}

/** The part of a tool that a delivery needs: without its code, environment and callback. */
function published({ name, description, inputSchema, readOnly }: ToolSpec): PublishedTool {
  return {
    name,
    inputSchema,
    description,
    readOnly,
  };
}

/** An agent that can't reach its tools runs without them and doesn't report it, so the run fails. */
export function requireListed(servers: readonly PublishedServer[]): void {
  const missed = servers.filter((server) => !server.listed()).map(({ name }) => `'${name}'`);
  if (missed.length === 0) return;
  throw new HarnessFailed(
    `The agent ended its turn without listing the tools of ${missed.join(", ")}: it can't have used them.`,
  );
}
