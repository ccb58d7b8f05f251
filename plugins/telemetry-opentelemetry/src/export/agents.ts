import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { isIP } from "node:net";
import { AddressRefused, guardedLookup, operatorPolicy, whyForbidden } from "@ambit/egress";
import type { TelemetryConfig } from "../config.js";
import type { HttpDestination } from "../destination.js";

/** Opens connections for one protocol: `https:`. */
export type HttpAgents = (protocol: string) => HttpAgent | HttpsAgent;

/** Connections for exports to one destination. An address that a caller may not reach is refused before it is dialled. */
export function agentFor({ url, isCallers }: HttpDestination, config: TelemetryConfig): HttpAgents {
  const lookup = isCallers ? guardFor(new URL(url), config) : undefined;
  return (protocol) => {
    const options = { keepAlive: true, lookup };
    return protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
  };
}

function guardFor(url: URL, config: TelemetryConfig) {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return guardedLookup((address) => whyForbidden([operatorPolicy(config)], address, port));
}

/** A literal address is never looked up, so it is checked here. @throws AddressRefused */
export function requireOpenAddress({ url, isCallers }: HttpDestination, config: TelemetryConfig): void {
  if (!isCallers) return;
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) === 0) return;
  const reason = whyForbidden(
    [operatorPolicy(config)],
    host,
    Number(port || (protocol === "https:" ? 443 : 80)),
  );
  if (reason !== undefined) throw new AddressRefused(reason);
}
