import type { ModelGatewayScope, ModelUse } from "@ambit/core/plugin";
import type { HttpClient } from "@ambit/egress/client";
import type { ModelRouteConfig } from "./config.js";
import type { GuardOf, Protocol } from "./protocols/protocol.js";
import type { HeldBytes } from "./request/held-bytes.js";

export interface RouteOptions {
  readonly use: ModelUse;
  readonly protocol: Protocol;
  readonly config: ModelRouteConfig;
  readonly held: HeldBytes;
  readonly client: HttpClient;
  readonly guardOf: GuardOf;
  readonly scope: Pick<ModelGatewayScope, "signal" | "admit" | "begin" | "onDecision" | "boundary">;
}
