import type { IncomingMessage } from "node:http";
import { readHost } from "@ambit/core/plugin";
import type { AdmittedDestination } from "../../decide.js";
import { readAuthority, type Target } from "../../target.js";

/** The destination of a plain HTTP request, and the path to request there. */
export type RequestedDestination =
  | { readonly ok: true; readonly target: Target; readonly path: string }
  /** The client named an invalid destination: refused by the boundary. `raw` is its spelling, `target` what it names, if that can be read. */
  | {
      readonly ok: false;
      readonly kind: "refused";
      readonly raw: string;
      readonly target?: Target;
      readonly reason: string;
    }
  /** Not a proxy request. */
  | { readonly ok: false; readonly kind: "unusable"; readonly reason: string };

/**
 * Reads a proxy request (absolute form, RFC 9112 section 3.2.2), or one inside a tunnel (origin form), and compares the
 * Host header with it, so that the rule, the lookup and the server use the same name.
 */
export function readHttpDestination(
  request: IncomingMessage,
  tunnel: AdmittedDestination | undefined,
): RequestedDestination {
  const url = request.url ?? "";
  const hosts = valuesOf(request, "host");
  if (tunnel !== undefined) {
    const raw = hosts[0] ?? "";
    const path = /^\/[^#]*$/.test(url) || url === "*" ? url : undefined;
    if (path === undefined)
      return { ok: false, kind: "refused", raw: url, reason: "a request inside a tunnel names a path only" };
    const problem =
      hosts.length === 1 ? hostProblem(raw, tunnel.target) : "the request needs exactly one Host header";
    return problem === undefined
      ? { ok: true, target: tunnel.target, path }
      : { ok: false, kind: "refused", raw, reason: problem };
  }
  if (/^https:\/\//i.test(url)) {
    return { ok: false, kind: "unusable", reason: "https needs CONNECT, not a plain request" };
  }
  const parts = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
  if (parts === null) {
    return {
      ok: false,
      kind: "unusable",
      reason: "this is a proxy: it accepts absolute http:// URLs, CONNECT and SOCKS5",
    };
  }
  const authority = parts[1] ?? "";
  const reading = readAuthority(authority, 80);
  if (!reading.ok) return { ok: false, kind: "refused", raw: authority, reason: reading.why };
  const needed = request.httpVersion === "1.0" ? 0 : 1;
  if (hosts.length > 1 || hosts.length < needed) {
    return {
      ok: false,
      kind: "refused",
      raw: authority,
      target: reading.target,
      reason: "the request needs exactly one Host header",
    };
  }
  const problem = hosts[0] === undefined ? undefined : hostProblem(hosts[0], reading.target);
  if (problem !== undefined)
    return { ok: false, kind: "refused", raw: authority, target: reading.target, reason: problem };
  const pathAndQuery = parts[2] ?? "";
  return {
    ok: true,
    target: reading.target,
    path: pathAndQuery.startsWith("/") ? pathAndQuery : `/${pathAndQuery}`,
  };
}

/** A message's header, unchanged: [name, value, name, value…] */
export interface RawMessage {
  readonly rawHeaders: readonly string[];
}

/** The header's values in order, including duplicates. `name` is in lower case. */
export function valuesOf(message: RawMessage, name: string): string[] {
  return message.rawHeaders.flatMap((header, index) =>
    index % 2 === 0 && header.toLowerCase() === name ? [message.rawHeaders[index + 1] ?? ""] : [],
  );
}

function hostProblem(header: string, target: Target): string | undefined {
  const reading = readAuthority(header, target.port);
  if (!reading.ok) {
    const bare = readHost(header);
    return `the Host header can't be read: ${bare.ok ? reading.why : bare.why}`;
  }
  return reading.target.host === target.host && reading.target.port === target.port
    ? undefined
    : `the Host header names ${reading.target.host}:${reading.target.port}, the request goes to ${target.host}:${target.port}`;
}
