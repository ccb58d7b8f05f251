import { type ModelGatewayScope, type ModelUse, PluginBrokeContract } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import type { ModelRouteConfig } from "./config.js";
import { protocols } from "./protocols/index.js";
import type { HeldBytes } from "./request/held-bytes.js";
import { AgentModelRoute } from "./route.js";
import { connectionsTo } from "./upstream/connections.js";

interface OpenRouteOptions {
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly lookup: Lookup | undefined;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}

/** A route with separate connections. `close` ends every open request. */
export function openRoute(
  use: ModelUse,
  { config, held, lookup, scope }: OpenRouteOptions,
): { readonly route: AgentModelRoute; close(): Promise<void> } {
  const protocol = protocols[use.protocol];
  if (protocol === undefined)
    throw new PluginBrokeContract(`The model route doesn't support ${use.protocol}.`);
  const connections = connectionsTo(new URL(use.endpoint), config, lookup);
  const route = new AgentModelRoute({ use, protocol, config, held, connections, scope });
  return { route, close: () => connections.destroy() };
}
