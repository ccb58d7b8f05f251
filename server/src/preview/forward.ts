import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
  STATUS_CODES,
  request as send,
} from "node:http";
import { type Duplex, pipeline } from "node:stream";

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

/** The name of its cookie. The prefix keeps other hosts below the same domain from setting it. */
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
  const originInside = `http://localhost:${preview.port}`;
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
    ...(origin === undefined ? {} : { origin: origin === preview.origin ? originInside : origin }),
    ...(referer?.startsWith(`${preview.origin}/`) && !referer.includes(ticketName)
      ? { referer: originInside + referer.slice(preview.origin.length) }
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
  const insidePrefix = new RegExp(
    `^https?://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]):${port}(?=[/?#]|$)`,
    "i",
  );
  const path = location.replace(insidePrefix, "");
  if (path === location) return location;
  // Two slashes would begin a host.
  return `/${path.replace(/^\/+/, "")}`;
}

function privately(given: string | undefined): string {
  const directives = (given ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "" && !/^(?:public|private|s-maxage)\b/i.test(one));
  return ["private", ...directives].join(", ");
}

/** Milliseconds that the connection of a server that takes nothing may hold the end of a refused upgrade. */
const refusalMs = 1_000;

export interface Forwarded {
  readonly preview: PreviewOrigin;
  /** Without the ticket. */
  readonly path: string;
  /** The connection to the program inside. */
  readonly connection: Duplex;
}

/** Passes one request on, and its response back. Ends with either side. */
export function forwardRequest(
  caller: IncomingMessage,
  response: ServerResponse,
  { preview, path, connection }: Forwarded,
  failed: () => void,
): void {
  const sent = open(caller, preview, path, connection, framingOf(caller));
  const fail = () => {
    connection.destroy();
    if (response.headersSent) response.destroy();
    else failed();
  };
  sent.once("response", (answer) => {
    if (!isFinal(answer)) return fail();
    response.writeHead(answer.statusCode, headersOutside(answer.headers, preview));
    pipeline(answer, response, () => connection.destroy());
  });
  sent.once("error", fail);
  // An answer that switches protocols without being asked. No error follows: the connection is no longer the request's.
  sent.once("upgrade", fail);
  response.once("close", () => sent.destroy());
  pipeline(caller, sent, () => {
    // Either side's errors are handled above.
  });
}

/** Passes a WebSocket's handshake on, and joins the two if the program inside agrees. */
export function forwardUpgrade(
  caller: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { preview, path, connection }: Forwarded,
  failed: () => void,
): void {
  const sent = open(caller, preview, path, connection, { connection: "Upgrade", upgrade: "websocket" });
  const leave = () => sent.destroy();
  sent.once("upgrade", (answer, inside, first) => {
    // Either side ends the other from now on.
    socket.off("close", leave);
    const headers = {
      ...headersOutside(answer.headers, preview),
      connection: "Upgrade",
      upgrade: "websocket",
    };
    socket.write(headOf(101, headers));
    if (first.length > 0) socket.write(first);
    if (head.length > 0) inside.write(head);
    const end = () => {
      socket.destroy();
      inside.destroy();
    };
    pipeline(socket, inside, socket, end);
  });
  const fail = () => {
    connection.destroy();
    failed();
  };
  sent.once("response", (answer) => {
    if (!isFinal(answer)) return fail();
    const { statusCode, headers } = answer;
    const safe = headersOutside(headers, preview);
    delete safe["content-length"];
    socket.write(headOf(statusCode, { ...safe, connection: "close" }));
    pipeline(answer, socket, () => connection.destroy());
    setTimeout(() => socket.destroy(), refusalMs).unref();
  });
  sent.once("error", fail);
  socket.once("close", leave);
  sent.end();
}

/**
 * Whether it is an answer to pass on. Node's parser also lets through numbers that are none, which its server refuses to write, and a
 * 101 without `Upgrade`: a proxy between here and the caller would take what follows for another protocol.
 */
function isFinal(answer: IncomingMessage): answer is IncomingMessage & { statusCode: number } {
  return answer.statusCode !== undefined && answer.statusCode >= 200;
}

/** How the caller's body ends. Without it, Node sends one of DELETE as it is, and the program would read the next request in it. */
function framingOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  if (headers["transfer-encoding"] !== undefined) return { "transfer-encoding": "chunked" };
  const length = headers["content-length"];
  return length === undefined ? {} : { "content-length": length };
}

function open(
  { method, headers }: IncomingMessage,
  preview: PreviewOrigin,
  path: string,
  connection: Duplex,
  more: Readonly<Record<string, string>>,
) {
  return send({
    method,
    path,
    headers: { ...headersInside(headers, preview), connection: "close", ...more },
    setHost: false,
    createConnection: () => connection,
  });
}

function headOf(status: number, headers: ReturnType<typeof headersOutside>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`, ...lines, "", ""].join("\r\n");
}
