/** Step 4: what the agent gets of its run, which is tools and a route to its model. */

import {
  type AcceptedPlan,
  type AgentEventOf,
  callPlugin,
  checkedReturn,
  HarnessFailed,
  inOffer,
  isAmbitError,
  messageOf,
  outsideOffers,
  pluginReturns,
} from "@ambit/core";
import type { RunRequest, ToolSpec } from "@ambit/core/contract";
import type {
  Agent,
  ConnectionDecision,
  DeliveryScope,
  Log,
  ModelAdmission,
  ModelExchange,
  ModelRoute,
  ModelUsage,
  Publication,
  PublishedCall,
  PublishedServer,
  PublishedTool,
  Sandbox,
  Scope,
  ToolSource,
} from "@ambit/core/plugin";
import type { CallRouter } from "../call/run-calls.js";
import type { ResultSecrets } from "../call/run-tools.js";
import type { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { PlannedRun } from "../tokens.js";

/**
 * An agent with everything that it was started with. It belongs to the session; a run borrows it, with its tools'
 * endpoints.
 */
export interface StartedAgent {
  readonly agent: Agent;
  readonly servers: readonly PublishedServer[];
  readonly router: CallRouter;
  readonly modelRouter: ModelRouter;
  /** Names of all tools that are published to it now. */
  readonly toolNames: Iterable<string>;
  /** Digest of the settings that the agent was started with: a run with other settings needs another agent. */
  readonly fingerprint: string;
  readonly scope: OwnedScope;
}

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
interface PublishingRun {
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
): Promise<Pick<StartedAgent, "servers" | "toolNames">> {
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
      const changing = changingTools(connected, actor, publishing, router);
      return {
        name: connected.name,
        get tools() {
          return changing.tools;
        },
        ...(changing.watch === undefined ? {} : { watch: changing.watch }),
        call,
      };
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
  return { servers, toolNames: namesOf(publications) };
}

/** The names of all tools, those that are published later included. */
function namesOf(publications: readonly Publication[]): Iterable<string> {
  return {
    *[Symbol.iterator]() {
      for (const { tools } of publications) for (const { name } of tools) yield name;
    },
  };
}

/**
 * The tools of a server, without the credentials that their texts repeat. Where the server changes them, the run that has the
 * agent knows of each before it can be called, so that its permissions hold.
 */
function changingTools(
  connected: Publication,
  actor: ToolSource,
  publishing: PublishingRun,
  router: CallRouter,
): Pick<Publication, "tools" | "watch"> {
  let tools = withoutSecrets(connected, publishing);
  const watchers: ((tools: readonly PublishedTool[]) => void)[] = [];
  inOffer(actor, () =>
    connected.watch?.((listed) =>
      outsideOffers(() => {
        const changed = checkedReturn(actor, "watch", pluginReturns.publication, {
          ...connected,
          tools: listed,
        });
        tools = withoutSecrets(changed, publishing);
        router.current?.learn(tools.map(({ name }) => name));
        for (const watcher of watchers) watcher(tools);
      }),
    ),
  );
  return {
    get tools() {
      return tools;
    },
    ...(connected.watch === undefined ? {} : { watch: (changed) => void watchers.push(changed) }),
  };
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

type Failed = AgentEventOf<"mcp_server_failed">;

/** Levels of causes that are looked at. */
const maxCauses = 8;

/** The event for an MCP server that its tool source couldn't connect to. Pure. */
export function mcpServerFailed(serverName: string, error: unknown): Failed {
  const message = messageOf(error);
  // An error of the catalogue has the status of our own response.
  const causes = causesOf(error).filter((cause) => !isAmbitError(cause));
  const status = causes.map(statusOf).find((code) => code !== undefined);
  return {
    type: "mcp_server_failed",
    serverName,
    reasonCode: reasonOf(causes, status),
    message,
    status,
  };
}

function reasonOf(causes: readonly unknown[], status: number | undefined): Failed["reasonCode"] {
  if (status === 401 || status === 403) return "handshake_rejected";
  if (status !== undefined) return "handshake_http_error";
  return causes.some(isOfConnection) ? "handshake_unreachable" : "handshake_invalid_response";
}

/** Codes of Node and undici: `ECONNREFUSED`, `UND_ERR_CONNECT_TIMEOUT`. */
function isOfConnection(error: unknown): boolean {
  const code = fieldOf(error, "code");
  return (
    typeof code === "string" &&
    /^(E[A-Z]+|UND_ERR_|ERR_TLS_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)
  );
}

function statusOf(error: unknown): number | undefined {
  for (const name of ["code", "status"]) {
    const value = fieldOf(error, name);
    if (typeof value === "number" && value >= 400 && value <= 599) return value;
  }
  return undefined;
}

function fieldOf(error: unknown, name: string): unknown {
  return typeof error === "object" && error !== null
    ? Object.entries(error).find(([key]) => key === name)?.[1]
    : undefined;
}

/** The error and what caused it, and their errors where there are several. */
function causesOf(error: unknown): readonly unknown[] {
  const causes: unknown[] = [];
  let current = error;
  while (current instanceof Error && causes.length < maxCauses) {
    causes.push(current);
    if (current instanceof AggregateError) causes.push(...current.errors.slice(0, maxCauses));
    current = current.cause;
  }
  return causes;
}

/** The run that has the agent: it decides on the agent's requests to its model, and gets their outcomes. */
export interface ModelCaller {
  admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission>;
  begin(model: string, max?: ModelUsage): ModelExchange;
  onDecision(decision: ConnectionDecision): void;
}

/** Passes the requests of an agent's route to the run that has the agent now. Between runs, none is sent. */
export class ModelRouter implements ModelCaller {
  current: ModelCaller | undefined;

  async admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission> {
    const { current } = this;
    if (current !== undefined) return await current.admit(model, signal, max);
    return { allowed: false, status: 403, reason: "no run is active" };
  }

  begin(model: string, max?: ModelUsage): ModelExchange {
    return this.current?.begin(model, max) ?? { used: () => {}, ended: () => {} };
  }

  onDecision(decision: ConnectionDecision): void {
    this.current?.onDecision(decision);
  }
}

/** Step 4: the route to the model. @returns undefined if the agent connects to its model directly, or has none. */
export async function openModelRoute(
  { gateway, boundary }: AcceptedPlan,
  log: Log,
  sandbox: Pick<Sandbox, "expose">,
  scope: Scope,
  router: ModelRouter,
): Promise<ModelRoute | undefined> {
  if (gateway === undefined) return undefined;
  const { actor } = gateway.probed;
  return await callPlugin(actor, "open", pluginReturns.modelRoute, () =>
    actor.open(gateway.use, {
      signal: scope.signal,
      defer: (close) => scope.defer(close),
      sandbox,
      boundary,
      log,
      admit: (model, signal, max) => outsideOffers(() => router.admit(model, signal, max)),
      begin: (model, max) => router.begin(model, max),
      onDecision: (decision) => outsideOffers(() => router.onDecision(decision)),
    }),
  );
}
