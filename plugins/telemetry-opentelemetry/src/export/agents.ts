import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { AddressRefused, guardedLookup, operatorPolicy, whyForbidden } from "@ambit/egress";
import type { TelemetryConfig } from "../config.js";
import type { HttpDestination } from "../destination.js";

/** Opens connections for one protocol: `https:`. */
export type HttpAgents = (protocol: string) => HttpAgent | HttpsAgent;

/** Milliseconds for one export, its retries included. */
export const exportMs = 10_000;
/** Bytes of a caller's collector's answer, with its header: OTLP's has a sentence at most. */
const maxAnswerBytes = 65_536;

/**
 * Connections for exports to one destination. An address that a caller may not reach is refused before it is dialled, and what
 * a caller's collector answers is bounded: OpenTelemetry's SDK keeps up to 4 MiB of it, each chunk with some hundred bytes.
 */
export function agentFor({ url, isCallers }: HttpDestination, config: TelemetryConfig): HttpAgents {
  const lookup = isCallers ? guardFor(new URL(url), config) : undefined;
  return (protocol) => {
    // A caller's has one answer for each connection, so that its bytes and its time are those of the connection.
    const options = { keepAlive: !isCallers, lookup };
    const agent = protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
    return isCallers ? bounded(agent) : agent;
  };
}

function bounded(agent: HttpAgent | HttpsAgent): HttpAgent | HttpsAgent {
  const open: HttpAgent["createConnection"] = agent.createConnection.bind(agent);
  agent.createConnection = (...given: Parameters<typeof open>) => {
    const connection = open(...given);
    if (connection != null) limit(connection);
    return connection;
  };
  return agent;
}

function limit(connection: Duplex): void {
  let bytes = 0;
  const end = (why: string) => connection.destroy(new Error(why));
  const late = setTimeout(() => end(`no whole answer within ${exportMs} ms`), exportMs);
  late.unref();
  connection.once("close", () => clearTimeout(late));
  connection.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > maxAnswerBytes) end(`an answer of more than ${maxAnswerBytes} bytes`);
  });
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
