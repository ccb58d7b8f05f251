import type { IncomingMessage, ServerResponse } from "node:http";
import { readAuthority, type Target } from "../../target.js";

/** What the session itself serves where its clients also reach the proxy. */
export interface OwnServer {
  /** The port at which clients reach the proxy, on their own loopback. */
  readonly port: number;
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
}

const ownNames: readonly string[] = ["127.0.0.1", "localhost"];

/** Whether a client that asks a proxy for this target means the address that it reached the proxy at. Pure. */
export function isOwnAddress(target: Target, port: number | undefined): boolean {
  return target.port === port && ownNames.includes(target.host);
}

/**
 * The path that a request asks of the session itself; undefined when it is the proxy's. Each request is judged, for
 * clients send both on one connection: `POST /path` is for a server (RFC 9112 section 3.2.1), `GET http://…` for a
 * proxy, unless it names the proxy's own address. Pure.
 */
export function ownPath(url: string, port: number): string | undefined {
  if (url.startsWith("/")) return url;
  const parts = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
  if (parts === null) return undefined;
  const reading = readAuthority(parts[1] ?? "", 80);
  if (!reading.ok || !isOwnAddress(reading.target, port)) return undefined;
  const rest = parts[2] ?? "";
  return rest.startsWith("/") ? rest : `/${rest}`;
}
