import { readHost } from "@ambit/core/plugin";

/**
 * A client's destination, in the one spelling that is matched, resolved, connected to and reported. Parsing and
 * deciding share this string, so that the client's bytes aren't interpreted twice.
 */
export interface Target {
  /** A lower-case ASCII name without trailing dot, or an address as ipaddr.js prints it, without brackets. */
  readonly host: string;
  readonly kind: "name" | "address";
  /** 1 to 65535. */
  readonly port: number;
}

export type TargetReading =
  | { readonly ok: true; readonly target: Target }
  | { readonly ok: false; readonly why: string };

/** Reads `host`, `host:port` or `[address]:port`. Without a port, the default is used; without both, it fails. */
export function readAuthority(raw: string, defaultPort?: number): TargetReading {
  const parts = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(raw);
  if (parts === null) return { ok: false, why: "the target is not of the form host:port" };
  const port = parts[2] === undefined ? defaultPort : Number(parts[2]);
  if (port === undefined) return { ok: false, why: "the target names no port" };
  return readTarget(parts[1] ?? "", port);
}

/** Reads a separate host and port, as SOCKS sends them. */
export function readTarget(rawHost: string, port: number): TargetReading {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    return { ok: false, why: "the port is not between 1 and 65535" };
  }
  const host = readHost(rawHost);
  return host.ok ? { ok: true, target: { host: host.host, kind: host.kind, port } } : host;
}

/** `host:port`, with brackets around an IPv6 address. What a client spelled wrongly has the port 0, and stays as it is. */
export function formatTarget(target: { readonly host: string; readonly port: number }): string {
  if (target.port === 0) return target.host;
  return target.host.includes(":") ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}
