import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { codeOf, type ProxyEndpoint, type UpstreamProxy } from "@ambit/core/plugin";
import ipaddr from "ipaddr.js";
import { matches } from "../decide.js";
import { portOf } from "../destination.js";
import { formatTarget, type Target } from "../target.js";

/** `localhost` and its subdomains, which lead to this host (RFC 6761). */
const localName = /(^|\.)localhost$/;

/**
 * The proxy on the way to a target; undefined where the connection is direct. Pure.
 *
 * @param addresses of its name. Empty: they aren't known, and only the name counts.
 */
export function proxyFor(
  target: Target,
  addresses: readonly string[],
  upstream: UpstreamProxy | undefined,
): ProxyEndpoint | undefined {
  if (upstream === undefined || isLoopback(target, addresses)) return undefined;
  const places = [target, ...addresses.map((host): Target => ({ host, kind: "address", port: target.port }))];
  for (const { destinations, proxy } of upstream.routes) {
    const isListed =
      destinations === "all" || destinations.some((rule) => places.some((place) => matches(rule, place)));
    if (isListed) return proxy === "direct" ? undefined : proxy;
  }
  return undefined;
}

/** Whether only the proxy resolves this name: it isn't looked up here, and its addresses aren't judged. Pure. */
export function isResolvedByProxy(target: Target, upstream: UpstreamProxy | undefined): boolean {
  return (
    upstream?.resolve === "proxy" && target.kind === "name" && proxyFor(target, [], upstream) !== undefined
  );
}

function isLoopback({ host, kind }: Target, addresses: readonly string[]): boolean {
  if (kind === "name" && localName.test(host)) return true;
  const all = kind === "address" ? [host] : addresses;
  return (
    all.length > 0 && all.every((text) => ipaddr.isValid(text) && ipaddr.parse(text).range() === "loopback")
  );
}

/** Bytes of a proxy's answer to CONNECT, up to its empty line. */
const maxHeaderBytes = 16 * 1024;

/** The deployer's proxy gave no tunnel. The message holds no credentials. */
export class ProxyFailed extends Error {
  override readonly name = "ProxyFailed";
  /**
   * @param code `PROXY_` and a status, `UNREACHABLE`, `TIMEOUT` or `INVALID`: "PROXY_407"
   * @param status of its answer; undefined where there was none
   */
  constructor(
    message: string,
    readonly code: string,
    readonly status?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface TunnelOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Gets the connection as soon as it begins, to end it with others. */
  readonly onSocket?: (socket: Socket) => void;
}

/**
 * A connection to the target through the proxy, which has answered CONNECT with success. Nothing of the target is read yet.
 *
 * @throws ProxyFailed; the signal's reason
 */
export function openTunnel(
  proxy: ProxyEndpoint,
  target: { readonly host: string; readonly port: number },
  { timeoutMs, signal, onSocket }: TunnelOptions,
): Promise<Socket> {
  const url = new URL(proxy.url);
  const place = formatTarget({ host: url.hostname.replace(/^\[|\]$/g, ""), port: portOf(url) });
  const failed = (what: string, code: string, status?: number, cause?: unknown) =>
    new ProxyFailed(`the proxy ${place} ${what}`, `PROXY_${code}`, status, { cause });
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const socket = connectTo(url);
    onSocket?.(socket);
    let received = Buffer.alloc(0);
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      socket.off("readable", read);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
      socket.destroy();
    };
    const abort = () => fail(signal?.reason);
    const timer = setTimeout(() => fail(failed(`did not answer in ${timeoutMs} ms`, "TIMEOUT")), timeoutMs);
    signal?.addEventListener("abort", abort, { once: true });
    // They stay: an error of the open tunnel belongs to its user, and rejecting again has no effect.
    socket.once("error", (error) =>
      fail(failed(`can't be reached (${codeOf(error) ?? error.message})`, "UNREACHABLE", undefined, error)),
    );
    const end = () => fail(failed("closed the connection without an answer", "INVALID"));
    socket.once("end", end);
    socket.once("close", end);
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => {
      const named = formatTarget(target);
      const authorization =
        proxy.authorization === undefined ? "" : `Proxy-Authorization: ${proxy.authorization}\r\n`;
      socket.write(`CONNECT ${named} HTTP/1.1\r\nHost: ${named}\r\n${authorization}\r\n`);
    });
    // By `readable`, after which a socket flows for its next user as a new one does.
    const read = () => {
      for (let bytes = socket.read(); bytes !== null; bytes = socket.read())
        received = Buffer.concat([received, bytes]);
      const headerEnd = received.indexOf("\r\n\r\n");
      if (headerEnd === -1) {
        if (received.length > maxHeaderBytes) fail(failed("sent too long a header", "INVALID"));
        return;
      }
      const [line = ""] = received.toString("latin1", 0, headerEnd).split("\r\n", 1);
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1] ?? Number.NaN);
      if (Number.isNaN(status)) return fail(failed("doesn't speak HTTP", "INVALID"));
      if (status < 200 || status > 299)
        return fail(failed(`answered ${status}${meaningOf(status)}`, String(status), status));
      settle();
      socket.off("end", end);
      socket.off("close", end);
      const first = received.subarray(headerEnd + 4);
      if (first.length > 0) socket.unshift(first);
      resolve(socket);
    };
    socket.on("readable", read);
  });
}

function connectTo(url: URL): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const options = { host, port: portOf(url), allowHalfOpen: true, noDelay: true };
  if (url.protocol !== "https:") return connect(options);
  return connectTls({
    ...options,
    rejectUnauthorized: true,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  });
}

function meaningOf(status: number): string {
  if (status === 407) return ": it wants other credentials (egress.proxy)";
  if (status === 403) return ": it refuses the destination";
  if (status === 502 || status === 504) return ": it can't reach the destination";
  return "";
}

export interface ProxyTrial {
  /** `host:port`. */
  readonly proxy: string;
  /** Whether it speaks HTTP and takes the credentials. Which destinations it lets through isn't known. */
  readonly works: boolean;
  /** Reads on after the proxy's name. */
  readonly observation: string;
}

const trialMs = 10_000;

/** Asks each proxy for a tunnel to itself: no other host is contacted. */
export async function tryProxies({ routes, resolve }: UpstreamProxy): Promise<readonly ProxyTrial[]> {
  const endpoints = routes.flatMap(({ proxy }) => (proxy === "direct" ? [] : [proxy]));
  const names = resolve === "proxy" ? "; it resolves names, and Ambit doesn't judge their addresses" : "";
  return await Promise.all(
    [...new Map(endpoints.map((endpoint) => [endpoint.url, endpoint])).values()].map(async (endpoint) => {
      const url = new URL(endpoint.url);
      const itself = { host: url.hostname.replace(/^\[|\]$/g, ""), port: portOf(url) };
      const finding = (works: boolean, observation: string) => ({
        proxy: url.host,
        works,
        observation: `${observation}${works ? names : ""}`,
      });
      try {
        (await openTunnel(endpoint, itself, { timeoutMs: trialMs })).destroy();
        return finding(true, "answered CONNECT with a tunnel");
      } catch (error) {
        if (!(error instanceof ProxyFailed)) throw error;
        const { status } = error;
        if (status === undefined) return finding(false, error.message.replace(/^the proxy \S+ /, ""));
        if (status === 407) return finding(false, "answered 407: it wants other credentials");
        return finding(true, `answered CONNECT (${status} for a tunnel to itself)`);
      }
    }),
  );
}
