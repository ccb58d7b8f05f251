import type { IncomingHttpHeaders } from "node:http";
import { isIPv4 } from "node:net";

/** Whether only this machine can reach a server that listens on `host`. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/** What a browser says of a request that no other site's or port's page made. */
const ownSites: ReadonlySet<string> = new Set(["same-origin", "none"]);

/** What a server on loopback lets in besides callers of this machine. */
export interface LocalExceptions {
  /** Further names under which it is called, without a port. */
  readonly allowedHosts: readonly string[];
  /** Sites whose pages may call. */
  readonly origins: readonly string[];
}

/**
 * Guards a server on loopback against web pages: one whose name was rebound to 127.0.0.1 still sends its own name
 * as Host, and every other names itself as Origin, or the browser says that it is another's (Sec-Fetch-Site). A page that
 * another port of this machine serves is another's too.
 *
 * @param hasUrlToken whether the URL has a token: images and links of a listed origin's page send no Origin, only that.
 * @returns why the request is refused, and the fix; undefined if it isn't.
 */
export function whyNotLocal(
  headers: IncomingHttpHeaders,
  { allowedHosts, origins }: LocalExceptions,
  hasUrlToken = false,
): string | undefined {
  const { host, origin, "sec-fetch-site": site } = headers;
  const called = urlOf(`http://${host ?? ""}`);
  if (called === undefined || !(isLoopback(called.hostname) || allowedHosts.includes(called.hostname)))
    return foreign("Host", host);
  if (origin !== undefined) {
    if (origins.includes(origin)) return undefined;
    const page = urlOf(origin);
    if (page === undefined || !(page.host === called.host || allowedHosts.includes(page.hostname)))
      return foreign("Origin", origin);
  } else if (site !== undefined && !ownSites.has(String(site)) && !(hasUrlToken && origins.length > 0))
    return foreign("Sec-Fetch-Site", String(site));
  return undefined;
}

function urlOf(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

function foreign(header: string, value: string | undefined): string {
  const shown = JSON.stringify((value ?? "").slice(0, 100));
  const setting =
    header === "Host"
      ? "the name in the configuration's server.allowedHosts"
      : "the page's origin in the configuration's server.origins";
  const fix = `call it as 127.0.0.1 or localhost and from no page of another server, or list ${setting}`;
  return `${header} ${shown} isn't this server's: ${fix}.`;
}
