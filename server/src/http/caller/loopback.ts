import type { IncomingHttpHeaders } from "node:http";
import { isIPv4 } from "node:net";
import { HttpRefusal } from "../response/refusal.js";

/** Whether only this machine can reach a server that listens on `host`. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/**
 * Guards a server on loopback against web pages: one whose name was rebound to 127.0.0.1 still sends its own name
 * as Host, and every other names itself as Origin.
 *
 * @param allowedHosts further names, without a port.
 * @throws HttpRefusal 403
 */
export function requireLocalCaller(headers: IncomingHttpHeaders, allowedHosts: readonly string[]): void {
  const isOurs = (name: string | undefined) =>
    name !== undefined && (isLoopback(name) || allowedHosts.includes(name));
  const { host, origin } = headers;
  if (!isOurs(hostOf(`http://${host ?? ""}`))) throw refused("Host", host);
  if (origin !== undefined && !isOurs(hostOf(origin))) throw refused("Origin", origin);
}

function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

function refused(header: string, value: string | undefined): HttpRefusal {
  const shown = JSON.stringify((value ?? "").slice(0, 100));
  const fix =
    "call it as 127.0.0.1 or localhost, or list the name in the configuration's server.allowedHosts";
  return new HttpRefusal(403, `${header} ${shown} isn't this server's: ${fix}.`, "unauthorized");
}
