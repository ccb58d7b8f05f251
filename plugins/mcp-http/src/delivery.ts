import {
  type DeliveryScope,
  type FetchHandler,
  type Finding,
  type Publication,
  type PublishedServer,
  requireBearer,
  type ToolDelivery,
} from "@ambit/core/plugin";
import type { McpHttpConfig } from "./config.js";

/**
 * Publishes tools to the agent over MCP (Streamable HTTP), through `sandbox.expose`. Its network is the run's channel
 * and no egress; it could only leak secrets into the sandbox, so that is what it claims to prevent.
 */
export class McpHttpDelivery implements ToolDelivery {
  readonly name = "mcp-http";
  readonly site = "runner";
  readonly claims = ["secrets.hidden"] as const;
  readonly #config: McpHttpConfig;

  constructor(config: McpHttpConfig) {
    this.#config = config;
  }

  touches(): readonly ["network", "secrets"] {
    return ["network", "secrets"];
  }

  gaps(): [] {
    return [];
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeSecrets } = await import("./probe.js");
    return [await probeSecrets(this.#config, signal)];
  }

  async publish(publication: Publication, scope: DeliveryScope): Promise<PublishedServer> {
    // The MCP SDK takes tens of milliseconds to load; a server's start, and runs without tools, don't load it.
    const { endpointPath, openEndpoint } = await import("./endpoint.js");
    const endpoint = openEndpoint(publication, this.#config, scope.log);
    // Until the token is known, no request can present it.
    let serve: FetchHandler = () => new Response(null, { status: 503 });
    const exposure = await scope.sandbox.expose((request) => serve(request));
    scope.defer(() => exposure.close());
    scope.defer(() => endpoint.close());
    // Again, after the backend's own check: a backend without it must not open the tools to other sandboxes.
    serve = requireBearer(exposure.token, endpoint.handle);
    return {
      name: publication.name,
      url: exposure.url.replace(/\/$/, "") + endpointPath,
      headers: { Authorization: `Bearer ${exposure.token}` },
      listed: endpoint.listed,
    };
  }
}
