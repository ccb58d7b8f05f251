import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { codeOf, type ProxyEndpoint } from "@ambit/core/plugin";
import { portOf } from "../destination.js";
import { formatTarget } from "../target.js";

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

export interface TunnelOptions {
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
