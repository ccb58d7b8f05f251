import {
  type ActorGap,
  type Boundary,
  type Finding,
  type Issue,
  type McpServer,
  type Publication,
  readHost,
  type ToolSource,
  type ToolSourceScope,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import { addressesOfThisHost, destinationGap, type Lookup, rangeOf, whyClosed } from "@ambit/egress";
import type { McpClientConfig } from "./config.js";
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

/** Whether the server is on this host, according to its URL. Pure. */
function isLoopback(url: URL): boolean {
  const reading = readHost(url.hostname);
  if (!reading.ok) return false;
  return reading.host === "localhost" || reading.host.startsWith("127.") || reading.host === "::1";
}

/** Why this URL can't be used. Pure. */
function issuesOf(server: McpServer, config: McpClientConfig): readonly Issue[] {
  if (server.connection.type !== "http") return [];
  const url = new URL(server.connection.url);
  const issues: Issue[] = [];
  if (url.protocol !== "https:" && !(config.loopbackWithoutTls && isLoopback(url))) {
    issues.push({
      path: "connection.url",
      message: "must be https: calls and results would be sent unencrypted",
    });
  }
  if (url.username !== "" || url.password !== "") {
    issues.push({
      path: "connection.url",
      message: "must not contain a user or password: put them into connection.credentials",
    });
  }
  return issues;
}

/** The server is a destination of the run: if it isn't on the allowlist, that is a gap. Pure. */
function gapsOf(boundary: Boundary, server: McpServer): readonly ActorGap[] {
  if (server.connection.type !== "http") return [];
  const gap = destinationGap(boundary.network, new URL(server.connection.url), {
    connects: "the runner connects to",
    otherwise: 'remove the server, or accept it with enforcement "best_effort"',
  });
  return gap === undefined ? [] : [gap];
}

/** Why this run may not connect to an address and port; undefined if it may. */
function addressGuard(
  boundary: Boundary,
  config: McpClientConfig,
): (address: string, port: number) => string | undefined {
  const listed = boundary.network.rules.filter((rule) => rule.kind === "range");
  const ranges = [...config.allowedRanges.map(rangeOf), ...listed];
  return (address, port) => whyClosed(address, ranges, { port, own: addressesOfThisHost() });
}
