import { type McpServer, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { RunRequest } from "@ambit/client";

type RequestedServer = NonNullable<RunRequest["mcpServers"]>[number];

/** The name of Ambit's own server. */
const reserved = "ambit";

/**
 * The editor's MCP servers as a request has them: one with an address is called from outside of the sandbox, one with a command runs
 * within it. Headers are credentials, which stay outside.
 * @throws RequestError that names each server that can't be used
 */
export function mcpServersOf(servers: readonly McpServer[]): RequestedServer[] {
  const unusable = servers.flatMap((server) =>
    "type" in server && server.type !== "http" ? [`'${server.name}' (${server.type})`] : [],
  );
  if (unusable.length > 0)
    throw RequestError.invalidParams(
      undefined,
      `MCP servers of the editor can't be used: ${unusable.join(", ")}. Ambit takes those with a command or an HTTP address: remove the others, or start ambit acp with --without-mcp`,
    );
  const names = new Set<string>();
  return servers.map((server) => ({ name: nameFor(server.name, names), connection: connectionOf(server) }));
}

function connectionOf(server: McpServer): RequestedServer["connection"] {
  if ("type" in server) {
    const { url, headers } = server as Extract<McpServer, { type: "http" }>;
    return {
      type: "http",
      url,
      credentials: headers.map(({ name, value }) => ({ binding: { kind: "header", name }, value })),
    };
  }
  const { command, args, env } = server;
  return {
    type: "stdio",
    command,
    args,
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
  };
}

/** An editor's name may have any characters. */
function nameFor(given: string, names: Set<string>): string {
  const short = given.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 60) || "server";
  const base = short === reserved ? `${short}_editor` : short;
  let name = base;
  for (let next = 2; names.has(name); next += 1) name = `${base}_${next}`;
  names.add(name);
  return name;
}
