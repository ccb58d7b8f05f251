import {
  type ActorGap,
  allowsDestination,
  type Boundary,
  type Issue,
  type McpServer,
  parseNetworkRule,
  type RangeRule,
  readHost,
  whyClosed,
} from "@ambit/core/plugin";
import type { McpClientConfig } from "./config.js";

/** Whether the server is of this host, as its URL is written. Pure. */
function isLoopback(url: URL): boolean {
  const reading = readHost(url.hostname);
  if (!reading.ok) return false;
  return reading.host === "localhost" || reading.host.startsWith("127.") || reading.host === "::1";
}

/** What keeps this URL from being used at all. Pure. */
export function issuesOf(server: McpServer, config: McpClientConfig): readonly Issue[] {
  if (server.connection.type !== "http") return [];
  const url = new URL(server.connection.url);
  const issues: Issue[] = [];
  if (url.protocol !== "https:" && !(config.loopbackWithoutTls && isLoopback(url))) {
    issues.push({
      path: "connection.url",
      message: "must be https: what a tool says and is told would travel in the clear",
    });
  }
  if (url.username !== "" || url.password !== "") {
    issues.push({
      path: "connection.url",
      message: "must hold no user or password: put them into connection.credentials",
    });
  }
  return issues;
}

/** The server is a destination of the run like any other: off the allowlist it is a gap. Pure. */
export function gapsOf(boundary: Boundary, server: McpServer): readonly ActorGap[] {
  if (boundary.network.mode === "on" || server.connection.type !== "http") return [];
  const url = new URL(server.connection.url);
  if (allowsDestination(boundary.network.rules, url)) return [];
  const capability = boundary.network.mode === "off" ? "network.deny" : "network.allow-host";
  return [
    {
      capability,
      reason: `the runner would connect to ${url.host}, outside the boundary`,
      fix: `list ${url.hostname} in sandboxPermission.network.allowlist, remove the server, or accept it with enforcement "best_effort"`,
    },
  ];
}

/** Why an address may not be dialled on this port, for this run; undefined when it may. */
export function addressGuard(
  boundary: Boundary,
  config: McpClientConfig,
  port: number,
): (address: string) => string | undefined {
  const ranges = [...config.allowedRanges.map(rangeOf), ...boundary.network.rules].filter(
    (rule): rule is RangeRule => rule?.kind === "range",
  );
  return (address) => whyClosed(address, ranges, { port });
}

/** The port that a URL leads to, its scheme's own included. Pure. */
export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}

function rangeOf(cidr: string) {
  const parsed = parseNetworkRule(cidr);
  return "rule" in parsed ? parsed.rule : undefined;
}
