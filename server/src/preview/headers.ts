import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";

/** The parameter of a preview's URL, and with its prefix the cookie that takes its place. */
export const ticketName = "ambit-preview";

/** One preview as its callers see it, and the port inside. */
export interface PreviewOrigin {
  /** `http://<label>.localhost:8767`. */
  readonly origin: string;
  readonly port: number;
  /** The headers in which its callers may present their token for the API. */
  readonly tokenHeaders: readonly string[];
  /** Origins whose pages may show it in a frame. */
  readonly frameAncestors: readonly string[];
}

/** With the prefix, no other host below the same domain can set it. */
export function cookieName({ origin }: Pick<PreviewOrigin, "origin">): string {
  return origin.startsWith("https:") ? `__Host-${ticketName}` : ticketName;
}

/** Between this listener and its client only (RFC 9110, 7.6.1). */
const hopByHop = [
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
];

/**
 * What isn't passed on to the program inside, besides a caller's token for the API: what proxies say of the caller, and the length
 * of the body, which is set again when it is sent.
 */
const keptOutside = new Set([
  ...hopByHop,
  "content-length",
  ...["cookie", "host", "expect", "origin", "referer"],
  ...["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"],
  ...["x-forwarded-server", "x-forwarded-ssl", "x-real-ip", "via"],
]);

/** What would hold beyond the preview's own origin, or outlive it, or end the caller's access to it. */
const keptInside = new Set([
  ...hopByHop,
  ...["strict-transport-security", "clear-site-data", "service-worker-allowed", "alt-svc"],
  ...["public-key-pins", "public-key-pins-report-only", "expect-ct"],
  ...["nel", "report-to", "reporting-endpoints"],
  ...["set-cookie", "referrer-policy", "origin-agent-cluster", "cache-control", "location"],
]);

function without(headers: IncomingHttpHeaders, dropped: ReadonlySet<string>): OutgoingHttpHeaders {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !dropped.has(name) && !named.has(name)),
  );
}

/** A caller's headers for the program inside, which is addressed as on its own machine. Pure. */
export function headersInside(headers: IncomingHttpHeaders, preview: PreviewOrigin): OutgoingHttpHeaders {
  const own = `http://localhost:${preview.port}`;
  const { origin, referer } = headers;
  const cookie = (headers.cookie ?? "")
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one !== "" && !isTicket(one))
    .join("; ");
  return {
    ...without(headers, keptOutside.union(new Set(preview.tokenHeaders))),
    host: `localhost:${preview.port}`,
    ...(cookie === "" ? {} : { cookie }),
    ...(origin === undefined ? {} : { origin: origin === preview.origin ? own : origin }),
    ...(referer?.startsWith(`${preview.origin}/`) && !referer.includes(ticketName)
      ? { referer: own + referer.slice(preview.origin.length) }
      : {}),
    "x-forwarded-host": new URL(preview.origin).host,
    "x-forwarded-proto": new URL(preview.origin).protocol.slice(0, -1),
  };
}

/** The program's headers for the caller. Pure. */
export function headersOutside(headers: IncomingHttpHeaders, preview: PreviewOrigin): OutgoingHttpHeaders {
  const cookies = (headers["set-cookie"] ?? []).filter((one) => !isTicket(one)).map(ofThisHost);
  const { location } = headers;
  // Pages of a sibling preview are of the same site: without this, they could show this one and catch its clicks.
  const framing = ["frame-ancestors 'self'", ...preview.frameAncestors].join(" ");
  const policy = headers["content-security-policy"];
  return {
    ...without(headers, keptInside),
    ...(cookies.length === 0 ? {} : { "set-cookie": cookies }),
    ...(location === undefined ? {} : { location: outsideLocation(location, preview.port) }),
    // A cache between here and the caller would answer others, without a ticket.
    "cache-control": privately(headers["cache-control"]),
    // The preview's name isn't for other origins, and its pages share no process with a sibling's.
    "referrer-policy": "same-origin",
    // Each policy applies: the program's own can only forbid more.
    "content-security-policy": policy === undefined ? framing : `${policy}, ${framing}`,
    "origin-agent-cluster": "?1",
    "x-robots-tag": "noindex",
  };
}

function isTicket(cookie: string): boolean {
  const name = cookie.split("=", 1)[0]?.trim().toLowerCase() ?? "";
  return name === ticketName || name === `__host-${ticketName}`;
}

/** Without `Domain`, a cookie is sent to the host that set it only. */
function ofThisHost(cookie: string): string {
  const [pair = "", ...attributes] = cookie.split(";");
  return [pair, ...attributes.filter((one) => !/^\s*domain\s*(?:=|$)/i.test(one))].join(";");
}

function outsideLocation(location: string, port: number): string {
  const own = new RegExp(`^https?://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]):${port}(?=[/?#]|$)`, "i");
  const path = location.replace(own, "");
  if (path === location) return location;
  // Two slashes would begin a host.
  return `/${path.replace(/^\/+/, "")}`;
}

function privately(given: string | undefined): string {
  const rest = (given ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "" && !/^(?:public|private|s-maxage)\b/i.test(one));
  return ["private", ...rest].join(", ");
}
