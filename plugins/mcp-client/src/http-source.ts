import {
  type ActorGap,
  AddressRefused,
  type Boundary,
  type Finding,
  guardedLookup,
  type Issue,
  type Lookup,
  type McpServer,
  type Publication,
  readHost,
  type ToolSource,
  type ToolSourceScope,
} from "@ambit/core/plugin";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Agent, fetch } from "undici";
import type { McpClientConfig } from "./config.js";
import { addressGuard, gapsOf, issuesOf, portOf } from "./destination.js";
import { probeHttpSource } from "./probe.js";
import { publicationOf } from "./publication.js";

/**
 * MCP servers over HTTP, spoken to from the runner: their credentials never enter the sandbox. Whatever the run's
 * boundary, an address that isn't of the public internet is dialled only when a listed range means it.
 */
export class HttpToolSource implements ToolSource {
  readonly name = "mcp-http-client";
  readonly connection = "http";
  readonly site = "runner";
  readonly claims = ["network.allow-host", "network.allow-cidr"] as const;

  constructor(
    readonly config: McpClientConfig,
    readonly lookup?: Lookup,
  ) {}

  touches(): readonly ["network"] {
    return ["network"];
  }

  covers(boundary: Boundary, server: McpServer): readonly ActorGap[] {
    return gapsOf(boundary, server);
  }

  issues(server: McpServer): readonly Issue[] {
    return issuesOf(server, this.config);
  }

  probe(signal: AbortSignal): Promise<readonly Finding[]> {
    return probeHttpSource(signal);
  }

  async connect(server: McpServer, scope: ToolSourceScope): Promise<Publication> {
    const { connection } = server;
    if (connection.type !== "http") throw new Error(`'${server.name}' is no HTTP server.`);
    const whyClosed = addressGuard(scope.boundary, this.config, portOf(new URL(connection.url)));
    const dispatcher = new Agent({
      connect: { lookup: guardedLookup(whyClosed, this.lookup) },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    scope.defer(() => dispatcher.destroy());
    const credentials = (connection.credentials ?? []).map(
      ({ binding, value }) => [binding.name, value] as const,
    );
    const transport = new StreamableHTTPClientTransport(new URL(connection.url), {
      requestInit: { headers: { ...connection.headers, ...Object.fromEntries(credentials) } },
      fetch: (url, init) => guardedFetch(url, init, whyClosed, dispatcher),
    });
    return publicationOf(server, transport, scope);
  }
}

/** A redirect would carry the credentials to wherever it points: it is an error. A literal address has no lookup. */
async function guardedFetch(
  url: string | URL,
  init: RequestInit | undefined,
  whyClosed: (address: string) => string | undefined,
  dispatcher: Agent,
): Promise<Response> {
  const target = new URL(url);
  const reading = readHost(target.hostname);
  if (!reading.ok) throw new AddressRefused(reading.why);
  const closed = reading.kind === "address" ? whyClosed(reading.host) : undefined;
  if (closed !== undefined) throw new AddressRefused(closed);
  const { method, headers, body, signal } = init ?? {};
  const response = await fetch(target, {
    dispatcher,
    redirect: "error",
    ...(method === undefined ? {} : { method }),
    ...(headers === undefined ? {} : { headers: [...new Headers(headers)] }),
    ...(typeof body === "string" ? { body } : {}),
    ...(signal === undefined ? {} : { signal }),
  });
  // undici's own response, in the platform's class: the SDK asks for that one.
  return new Response(response.body === null ? null : (response.body as ReadableStream<Uint8Array>), {
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers],
  });
}
