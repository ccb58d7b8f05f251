import type { IncomingMessage, ServerResponse } from "node:http";
import { formatTarget, readAuthority, type Target } from "../../target.js";

/** Response header that distinguishes a refusal by the boundary (`refused`) from a fault behind it (`passed`). */
export const BOUNDARY_HEADER = "x-ambit-boundary";

/** A whole HTTP response of the proxy itself. The body is JSON with a sentence in `message`. */
export interface OwnResponse {
  readonly status: number;
  readonly statusText: string;
  readonly boundary: "refused" | "passed";
  readonly body: string;
}

interface NamedDestination {
  readonly host: string;
  readonly port: number;
}

export function refusal(target: NamedDestination, reason: string): OwnResponse {
  return {
    status: 403,
    statusText: "Refused by Ambit's boundary",
    boundary: "refused",
    body: asBody({
      error: "boundary_refused",
      message: `Ambit's boundary refused the connection to ${formatTarget(target)}: ${reason}. This is not a network fault; trying again won't help.`,
      target: { host: target.host, port: target.port },
      reason,
    }),
  };
}

export function upstreamFailure(target: NamedDestination, status: 502 | 504, cause: string): OwnResponse {
  return {
    status,
    statusText: status === 502 ? "Bad Gateway" : "Gateway Timeout",
    boundary: "passed",
    body: asBody({
      error: "upstream_failed",
      message: `Ambit's boundary allowed ${formatTarget(target)}, but the connection failed: ${cause}. This was not the boundary.`,
      target: { host: target.host, port: target.port },
      reason: cause,
    }),
  };
}

/** The client sent something that the proxy doesn't support; no destination was checked. */
export function unusable(status: 400 | 431 | 501 | 503, cause: string): OwnResponse {
  const texts = { 400: "Bad Request", 431: "Header Too Large", 501: "Not Implemented", 503: "Unavailable" };
  return {
    status,
    statusText: texts[status],
    boundary: "passed",
    body: asBody({
      error: "proxy_cannot_serve",
      message: `Ambit's proxy can't serve this: ${cause}.`,
      reason: cause,
    }),
  };
}

/** Names and values in turn, as Node's HTTP server takes them. */
export function headersOf(own: OwnResponse): string[] {
  return headerPairs(own).flat();
}

/** The response as bytes, for a connection that has left Node's HTTP server (CONNECT, upgrades). */
export function bytesOf(own: OwnResponse): string {
  const lines = headerPairs(own).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${own.status} ${own.statusText}`, ...lines, "", own.body].join("\r\n");
}

function headerPairs(own: OwnResponse): [name: string, value: string][] {
  return [
    ["Content-Type", "application/json; charset=utf-8"],
    ["Content-Length", String(Buffer.byteLength(own.body))],
    ["Cache-Control", "no-store"],
    [BOUNDARY_HEADER, own.boundary],
    ["Connection", "close"],
  ];
}

function asBody(content: object): string {
  return `${JSON.stringify(content)}\n`;
}

/** What the session itself serves at the address of the proxy. */
export interface OwnServer {
  /** The port at which clients reach the proxy, on their own loopback. */
  readonly port: number;
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
}

const ownNames: readonly string[] = ["127.0.0.1", "localhost"];

/** Whether the target of a client's proxy request is the address of the proxy itself. Pure. */
export function isOwnAddress(target: Target, port: number | undefined): boolean {
  return target.port === port && ownNames.includes(target.host);
}

/**
 * The path of a request to the session itself; undefined if it is for the proxy. Each request is judged, since
 * clients send both on one connection: `POST /path` is for a server (RFC 9112 section 3.2.1), `GET http://…` for a
 * proxy, unless it names the proxy's own address. Pure.
 */
export function ownPath(url: string, port: number): string | undefined {
  if (url.startsWith("/")) return url;
  const parts = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
  if (parts === null) return undefined;
  const reading = readAuthority(parts[1] ?? "", 80);
  if (!reading.ok || !isOwnAddress(reading.target, port)) return undefined;
  const target = parts[2] ?? "";
  return target.startsWith("/") ? target : `/${target}`;
}
