import {
  type FetchHandler,
  type Finding,
  type Issue,
  type ModelGateway,
  type ModelGatewayScope,
  type ModelRoute,
  type ModelUse,
  requireBearer,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import type { ModelRouteConfig } from "./config.js";
import { endpointIssues } from "./endpoint.js";
import { allowedModels, priceOf } from "./models.js";
import { protocols } from "./protocols/index.js";
import { HeldBytes } from "./request/read-body.js";
import { openRoute } from "./route.js";

/**
 * Carries requests to models through `sandbox.expose`. Its network is the run's channel and no egress; it could only
 * leak secrets into the sandbox, so that is what it claims to prevent.
 */
export class ModelRouteGateway implements ModelGateway {
  readonly name = "model-route";
  readonly site = "runner";
  readonly claims = ["secrets.hidden"] as const;
  readonly #config: ModelRouteConfig;
  readonly #lookup: Lookup | undefined;
  readonly #upstreamProxy: UpstreamProxy | undefined;
  readonly #held: HeldBytes;

  /** @param lookup default: this host's; tests replace it. */
  constructor(config: ModelRouteConfig, lookup?: Lookup, upstreamProxy?: UpstreamProxy) {
    this.#config = config;
    this.#lookup = lookup;
    this.#upstreamProxy = upstreamProxy;
    this.#held = new HeldBytes(config.limits.heldBytes);
  }

  touches(): readonly ["network", "secrets"] {
    return ["network", "secrets"];
  }

  gaps(): readonly [] {
    return [];
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeSecrets } = await import("./probe.js");
    return [await probeSecrets(signal)];
  }

  issues(use: ModelUse): readonly Issue[] {
    const protocol = protocols[use.protocol];
    if (protocol === undefined) {
      return [
        { path: "modelConnection.deployment", message: `the model route doesn't support ${use.protocol}` },
      ];
    }
    return [...endpointIssues(use, this.#config), ...protocol.issues(use)];
  }

  unpriced(use: ModelUse): readonly string[] {
    const { models, prices } = this.#config;
    return allowedModels(use, models).filter((model) => priceOf(model, prices) === undefined);
  }

  async open(use: ModelUse, scope: ModelGatewayScope): Promise<ModelRoute> {
    const { route, close } = openRoute(use, {
      config: this.#config,
      held: this.#held,
      lookup: this.#lookup,
      upstreamProxy: this.#upstreamProxy,
      scope,
    });
    scope.defer(close);
    // Until the token is known, no request can present it.
    let serve: FetchHandler = () => new Response(null, { status: 503 });
    const exposure = await scope.sandbox.expose((request) => serve(request));
    scope.defer(() => exposure.close());
    // Again, after the backend's own check: a backend without it must not open the model to other sandboxes.
    serve = requireBearer(exposure.token, route.handle);
    return { baseUrl: exposure.url.replace(/\/$/, "") + use.basePath, key: exposure.token };
  }
}
