import type { Agent as HttpAgent } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import type { Duplex } from "node:stream";
import type { UpstreamProxy } from "@ambit/core/plugin";
import { AddressRefused, operatorPolicy, whyForbidden, whyUrlForbidden } from "@ambit/egress";
import { guardedAgents } from "@ambit/egress/client";
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
export function agentFor(
  { isCallers }: HttpDestination,
  config: TelemetryConfig,
  upstreamProxy?: UpstreamProxy,
): HttpAgents {
  const policy = operatorPolicy(config);
  const whyClosed = (address: string, port: number) => whyForbidden([policy], address, port);
  // A caller's has one answer for each connection, so that its bytes and its time are those of the connection.
  const agents = isCallers
    ? guardedAgents({ whyClosed, upstreamProxy, onConnection: limit }, { keepAlive: false })
    : guardedAgents({ upstreamProxy }, { keepAlive: true });
  return (protocol) => (protocol === "https:" ? agents.https : agents.http);
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

/** A literal address is refused before a queue is opened for it. @throws AddressRefused */
export function requireOpenAddress(destination: HttpDestination, config: TelemetryConfig): void {
  if (!destination.isCallers) return;
  const reason = whyUrlForbidden([operatorPolicy(config)], new URL(destination.url));
  if (reason !== undefined) throw new AddressRefused(reason);
}
