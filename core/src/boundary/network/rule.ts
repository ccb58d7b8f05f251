import ipaddr from "ipaddr.js";
import type { HostRule, NetworkRule, RangeRule } from "../boundary.js";
import { readHost } from "./host.js";

export type ParsedRule = { readonly rule: NetworkRule } | { readonly problem: string };

/**
 * One allowlist entry: `name`, `*.suffix`, `address` or `range/prefix`, each with an optional `:port` (an IPv6
 * address in brackets then). The rule comes out canonical: two spellings of one destination are equal. Pure.
 */
export function parseNetworkRule(entry: string): ParsedRule {
  const split = splitPort(entry);
  if (split === undefined) {
    return { problem: "must be a name, *.suffix, address or range, without scheme or path" };
  }
  const { destination, port } = split;
  if (port !== undefined && (port < 1 || port > 65_535)) return { problem: "port must be 1 to 65535" };
  const parsed = isAddress(destination) ? parseRange(destination) : parseHost(destination);
  return "problem" in parsed || port === undefined ? parsed : { rule: { ...parsed.rule, port } };
}

/** As written by a person: `*.example.com:443`, `10.0.0.0/8`. */
export function formatRule(rule: NetworkRule): string {
  const destination = rule.kind === "range" ? rule.cidr : `${rule.subdomains ? "*." : ""}${rule.name}`;
  if (rule.port === undefined) return destination;
  return rule.kind === "range" && rule.family === 6
    ? `[${destination}]:${rule.port}`
    : `${destination}:${rule.port}`;
}

interface Split {
  readonly destination: string;
  readonly port?: number;
}

function splitPort(entry: string): Split | undefined {
  const bracketed = /^\[([^\]]*:[^\]]*)\](\/\d+)?(?::(\d{1,5}))?$/.exec(entry);
  if (bracketed !== null) {
    const [, address = "", prefix = "", port] = bracketed;
    return { destination: address + prefix, ...(port === undefined ? {} : { port: Number(port) }) };
  }
  if (entry.includes("://")) return undefined;
  // More than one colon without brackets is an IPv6 address: its last part isn't a port.
  if (entry.split(":").length > 2) return { destination: entry };
  const parts = /^([^:]+)(?::(\d{1,5}))?$/.exec(entry);
  if (parts?.[1] === undefined) return undefined;
  return { destination: parts[1], ...(parts[2] === undefined ? {} : { port: Number(parts[2]) }) };
}

function isAddress(text: string): boolean {
  return text.includes("/") || text.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(text);
}

function parseRange(text: string): { rule: RangeRule } | { problem: string } {
  const parts = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = parts?.[1] ?? "";
  // Four plain decimals only: parsers disagree on whether `010.0.0.0/8` is 8.0.0.0 or 10.0.0.0.
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!isFour && !(address.includes(":") && ipaddr.IPv6.isValid(address))) {
    return { problem: "must be an address and a prefix length, such as 203.0.113.0/24 or 2001:db8::/32" };
  }
  const parsed = ipaddr.parse(address);
  const width = isFour ? 32 : 128;
  const prefix = parts?.[2] === undefined ? width : Number(parts[2]);
  if (prefix > width) return { problem: `must have a prefix length of at most ${width}` };
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) {
    return { problem: "must be written as an IPv4 range: Ambit never connects to an IPv4-mapped address" };
  }
  const network = isFour
    ? ipaddr.IPv4.networkAddressFromCIDR(`${address}/${prefix}`)
    : ipaddr.IPv6.networkAddressFromCIDR(`${address}/${prefix}`);
  return { rule: { kind: "range", cidr: `${network.toString()}/${prefix}`, family: isFour ? 4 : 6 } };
}

function parseHost(text: string): { rule: HostRule } | { problem: string } {
  const subdomains = text.startsWith("*.");
  const bare = subdomains ? text.slice(2) : text;
  if (bare.includes("*")) {
    return {
      problem:
        "may have a * only at the beginning, as in *.example.com; to allow every host, turn the network on",
    };
  }
  const reading = readHost(bare);
  if (!reading.ok) return { problem: `must be a host name: ${reading.why}` };
  // The URL standard reads 127.1, 0x7f.1 and 2130706433 as addresses: a rule for a name would never match them.
  if (reading.kind === "address") return { problem: `must write an address as ${reading.host}` };
  if (subdomains && !reading.host.includes(".")) {
    return { problem: "must have a domain of two labels after the *" };
  }
  return { rule: { kind: "host", name: reading.host, subdomains } };
}
