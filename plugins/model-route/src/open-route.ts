import {
  type ModelGatewayScope,
  type ModelUse,
  PluginBrokeContract,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { guardedDispatcher } from "@ambit/egress/dispatcher";
import type { ModelRouteConfig } from "./config.js";
import { protocols } from "./protocols/index.js";
import type { HeldBytes } from "./request/held-bytes.js";
import { AgentModelRoute } from "./route.js";
import { whyAddressClosed } from "./upstream/endpoint.js";

interface OpenRouteOptions {
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly lookup: Lookup | undefined;
  readonly upstreamProxy?: UpstreamProxy | undefined;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}

/** A route with separate connections. `close` ends every open request. */
export function openRoute(
  use: ModelUse,
  { config, held, lookup, upstreamProxy, scope }: OpenRouteOptions,
): { readonly route: AgentModelRoute; close(): Promise<void> } {
  const protocol = protocols[use.protocol];
  if (protocol === undefined)
    throw new PluginBrokeContract(`The model route doesn't support ${use.protocol}.`);
  const guardOf = (url: URL) => ({
    whyClosed: (address: string) => whyAddressClosed(url, address, config),
    lookup,
    upstreamProxy,
  });
  const { connectMs, firstByteMs, idleMs, concurrentRequests } = config.limits;
  const connections = guardedDispatcher(guardOf(new URL(use.endpoint)), {
    connections: concurrentRequests,
    headersTimeout: firstByteMs,
    bodyTimeout: idleMs,
    connectMs,
  });
  const route = new AgentModelRoute({ use, protocol, config, held, connections, guardOf, scope });
  return { route, close: () => connections.destroy() };
}
