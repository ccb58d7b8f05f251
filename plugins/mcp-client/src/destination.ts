import { type ActorGap, type Boundary, type Issue, type McpServer, readHost } from "@ambit/core/plugin";
import { addressesOfThisHost, destinationGap, rangeOf, whyClosed } from "@ambit/egress";
import type { McpClientConfig } from "./config.js";

/** Whether the server is on this host, according to its URL. Pure. */
function isLoopback(url: URL): boolean {
  const reading = readHost(url.hostname);
  if (!reading.ok) return false;
  return reading.host === "localhost" || reading.host.startsWith("127.") || reading.host === "::1";
}

/** Why this URL can't be used. Pure. */
export function issuesOf(server: McpServer, config: McpClientConfig): readonly Issue[] {
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
export function gapsOf(boundary: Boundary, server: McpServer): readonly ActorGap[] {
  if (server.connection.type !== "http") return [];
  const gap = destinationGap(boundary.network, new URL(server.connection.url), {
    connects: "the runner connects to",
    otherwise: 'remove the server, or accept it with enforcement "best_effort"',
  });
  return gap === undefined ? [] : [gap];
}

/** Why this run may not connect to an address and port; undefined if it may. */
export function addressGuard(
  boundary: Boundary,
  config: McpClientConfig,
): (address: string, port: number) => string | undefined {
  const listed = boundary.network.rules.filter((rule) => rule.kind === "range");
  const ranges = [...config.allowedRanges.map(rangeOf), ...listed];
  return (address, port) => whyClosed(address, ranges, { port, own: addressesOfThisHost() });
}
