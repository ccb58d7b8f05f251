import type { IncomingMessage, ServerResponse } from "node:http";
import { readAuthority, type Target } from "../../target.js";

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
  const rest = parts[2] ?? "";
  return rest.startsWith("/") ? rest : `/${rest}`;
}
