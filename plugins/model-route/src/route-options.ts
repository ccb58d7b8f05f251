import type { ModelGatewayScope, ModelUse } from "@ambit/core/plugin";
import type { Dispatcher } from "undici";
import type { ModelRouteConfig } from "./config.js";
import type { GuardOf, Protocol } from "./protocols/protocol.js";
import type { HeldBytes } from "./request/held-bytes.js";

export interface RouteOptions {
  readonly use: ModelUse;
  readonly protocol: Protocol;
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly connections: Dispatcher;
  readonly guardOf: GuardOf;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}
