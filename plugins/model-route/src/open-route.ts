import {
  type ModelGatewayScope,
  type ModelUse,
  PluginBrokeContract,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { HttpClient } from "@ambit/egress/client";
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
): { readonly route: AgentModelRoute; close(): void } {
  const protocol = protocols[use.protocol];
  if (protocol === undefined)
    throw new PluginBrokeContract(`The model route doesn't support ${use.protocol}.`);
  const guardOf = (url: URL) => ({
    whyClosed: (address: string) => whyAddressClosed(url, address, config),
    lookup,
    upstreamProxy,
  });
  const { connectMs, firstByteMs, idleMs: silenceMs } = config.limits;
  const client = new HttpClient(guardOf(new URL(use.endpoint)), { connectMs, firstByteMs, silenceMs });
  const route = new AgentModelRoute({ use, protocol, config, held, client, guardOf, scope });
  return { route, close: () => client.close() };
}
