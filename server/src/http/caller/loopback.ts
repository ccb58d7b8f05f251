import type { IncomingHttpHeaders } from "node:http";
import { isIPv4 } from "node:net";

/** Whether only this machine can reach a server that listens on `host`. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/** What a browser says of a request that no other site's or port's page made. */
const ownSites: ReadonlySet<string> = new Set(["same-origin", "none"]);

/**
 * Guards a server on loopback against web pages: one whose name was rebound to 127.0.0.1 still sends its own name
 * as Host, and every other names itself as Origin, or the browser says that it is another's (Sec-Fetch-Site). A page that
 * another port of this machine serves is another's too.
 *
 * @param allowedHosts further names, without a port.
 * @returns why the request is refused, and the fix; undefined if it isn't.
 */
export function whyNotLocal(
  headers: IncomingHttpHeaders,
  allowedHosts: readonly string[],
): string | undefined {
  const { host, origin, "sec-fetch-site": site } = headers;
  const called = urlOf(`http://${host ?? ""}`);
  if (called === undefined || !(isLoopback(called.hostname) || allowedHosts.includes(called.hostname)))
    return foreign("Host", host);
  if (origin !== undefined) {
    const page = urlOf(origin);
    if (page === undefined || !(page.host === called.host || allowedHosts.includes(page.hostname)))
      return foreign("Origin", origin);
  } else if (site !== undefined && !ownSites.has(String(site)))
    return foreign("Sec-Fetch-Site", String(site));
  return undefined;
}

function urlOf(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

function foreign(header: string, value: string | undefined): string {
  const shown = JSON.stringify((value ?? "").slice(0, 100));
  const fix =
    "call it as 127.0.0.1 or localhost and from no page of another server, or list the name in the configuration's server.allowedHosts";
  return `${header} ${shown} isn't this server's: ${fix}.`;
}
