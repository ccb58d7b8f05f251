import type {
  ActorGap,
  Boundary,
  Finding,
  Issue,
  McpServer,
  Publication,
  ToolSource,
  ToolSourceScope,
  UpstreamProxy,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import type { McpClientConfig } from "./config.js";
import { addressGuard, gapsOf, issuesOf } from "./destination.js";
import { MessageGuard } from "./message-guard.js";

/**
 * MCP servers over HTTP, connected from the runner, so their credentials never enter the sandbox. Whatever the run's
 * boundary, an address outside the public internet is used only if a listed range contains it.
 */
export class HttpToolSource implements ToolSource {
  readonly name = "mcp-http-client";
  readonly connection = "http";
  readonly site = "runner";
  readonly claims = ["network.allow-host", "network.allow-cidr"] as const;

  constructor(
    readonly config: McpClientConfig,
    readonly lookup?: Lookup,
    readonly upstreamProxy?: UpstreamProxy,
  ) {}

  touches(): readonly ["network"] {
    return ["network"];
  }

  gaps(boundary: Boundary, server: McpServer): readonly ActorGap[] {
    return gapsOf(boundary, server);
  }

  issues(server: McpServer): readonly Issue[] {
    return issuesOf(server, this.config);
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeHttpSource } = await import("./probe.js");
    return await probeHttpSource(signal);
  }

  async connect(server: McpServer, scope: ToolSourceScope): Promise<Publication> {
    const { connection } = server;
    if (connection.type !== "http") throw new Error(`'${server.name}' is not an HTTP server.`);
    // The MCP SDK takes tens of milliseconds to load, so only runs with such a server load it.
    const { httpChannels } = await import("./transport/http.js");
    const { publicationOf } = await import("./publication.js");
    const { lookup, upstreamProxy } = this;
    const whyClosed = addressGuard(scope.boundary, this.config);
    const openChannel = httpChannels(connection, { whyClosed, lookup, upstreamProxy }, scope);
    return publicationOf(server, async () => openChannel(new MessageGuard(this.config)), scope);
  }
}
