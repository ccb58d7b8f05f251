import { isIPv4 } from "node:net";
import { domainToUnicode } from "node:url";
import ipaddr from "ipaddr.js";

/**
 * Where a client wants to go, in the one spelling that is matched, resolved, dialled and reported. Parsing and
 * deciding share this string, so that no second reading of the client's bytes can differ from the first.
 */
export interface Target {
  /** A lower-case ASCII name without trailing dot, or an address as ipaddr.js prints it, without brackets. */
  readonly host: string;
  readonly kind: "name" | "address";
  /** 1 to 65535. */
  readonly port: number;
}

export type HostReading =
  | { readonly ok: true; readonly host: string; readonly kind: Target["kind"] }
  | { readonly ok: false; readonly why: string };

export type TargetReading =
  | { readonly ok: true; readonly target: Target }
  | { readonly ok: false; readonly why: string };

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this refuses.
const FORBIDDEN = /[\u0000-\u0020\u007f-\u009f%/\\@#?]/;
/** One label of a name as resolvers accept it; the underscore is for service names. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const LONGEST_NAME = 253;

/**
 * Reads a host as a URL parser does (case, IDN, `127.1`, `0x7f.1`, decimal, octal), one trailing dot removed.
 * `raw` is a name, an IPv4 address in any spelling, or an IPv6 address in brackets.
 */
export function readHost(raw: string): HostReading {
  if (raw === "") return { ok: false, why: "the host is empty" };
  if (FORBIDDEN.test(raw)) {
    return { ok: false, why: "the host has a control character, a space, or one of % / \\ @ # ?" };
  }
  if (raw.startsWith("[") ? !raw.endsWith("]") : raw.includes(":")) {
    return { ok: false, why: "the host is more than a name or an address" };
  }
  let url: URL;
  try {
    url = new URL(`http://${raw}/`);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { ok: false, why: "the host is not a valid name or address" };
  }
  const canonical = url.hostname;
  if (canonical.startsWith("[")) {
    return { ok: true, kind: "address", host: ipaddr.parse(canonical.slice(1, -1)).toString() };
  }
  // The URL parser has brought every other spelling to four decimals; ipaddr.js would throw to say that a name is none.
  if (isIPv4(canonical)) return { ok: true, kind: "address", host: canonical };
  const name = canonical.endsWith(".") ? canonical.slice(0, -1) : canonical;
  if (name.length > LONGEST_NAME || !name.split(".").every(isLabel)) {
    return { ok: false, why: "the host is not a valid DNS name" };
  }
  return { ok: true, kind: "name", host: name };
}

/** Some versions of Node let punycode through that stands for nothing: decoding leaves it as it is. */
function isLabel(label: string): boolean {
  return LABEL.test(label) && !(label.startsWith("xn--") && domainToUnicode(label) === label);
}

/** Reads `host`, `host:port` or `[address]:port`. Without a port the default is taken; without either it fails. */
export function readAuthority(raw: string, defaultPort?: number): TargetReading {
  const parts = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(raw);
  if (parts === null) return { ok: false, why: "the target is not of the form host:port" };
  const port = parts[2] === undefined ? defaultPort : Number(parts[2]);
  if (port === undefined) return { ok: false, why: "the target names no port" };
  return readTarget(parts[1] ?? "", port);
}

/** Reads a host and a port that came apart from each other, as SOCKS sends them. */
export function readTarget(rawHost: string, port: number): TargetReading {
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    return { ok: false, why: "the port is not between 1 and 65535" };
  }
  const host = readHost(rawHost);
  return host.ok ? { ok: true, target: { host: host.host, kind: host.kind, port } } : host;
}

/** `host:port`, with brackets around an IPv6 address. */
export function formatTarget(target: { readonly host: string; readonly port: number }): string {
  return target.host.includes(":") ? `[${target.host}]:${target.port}` : `${target.host}:${target.port}`;
}
