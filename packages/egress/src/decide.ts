import { isIP } from "node:net";
import {
  formatRule,
  type HostRule,
  type NetworkBoundary,
  type NetworkRule,
  type RangeRule,
} from "@ambit/core/plugin";
import ipaddr from "ipaddr.js";
import { readTarget, type Target } from "./target.js";

export interface NetworkDecision {
  readonly allowed: boolean;
  /** One sentence for the operator, the agent and the receipt. */
  readonly reason: string;
  /** The rule that allowed it, in its written form. */
  readonly rule?: string;
}

export type EgressProtocol = "http" | "connect" | "socks5" | "socks4" | "unknown";

/** An allowed destination, before or after the connection is made. */
export interface AdmittedDestination {
  readonly target: Target;
  readonly protocol: EgressProtocol;
  readonly addresses: readonly string[];
  readonly decision: NetworkDecision;
}

/**
 * The first half, before any name is resolved: a name without a rule is never looked up, since the lookup itself
 * could carry data out. `allowed` means that `decideConnection` decides. Pure.
 */
export function decideBeforeLookup(target: Target, network: NetworkBoundary): NetworkDecision {
  if (network.mode === "on") return { allowed: true, reason: "this run's network is not restricted" };
  if (network.mode === "off" || network.rules.length === 0)
    return refused("this run may not use the network");
  const rule = network.rules.find((candidate) => matches(candidate, target));
  if (rule !== undefined)
    return { allowed: true, reason: `listed as ${formatRule(rule)}`, rule: formatRule(rule) };
  const otherPort = network.rules.find((candidate) => matches({ ...candidate, port: target.port }, target));
  if (otherPort !== undefined) {
    return refused(`${target.host} is listed as ${formatRule(otherPort)}, not for port ${target.port}`);
  }
  return refused(
    target.kind === "address"
      ? `the address ${target.host} is in no listed range`
      : `the host ${target.host} is not on this run's list`,
  );
}

/**
 * Decides on a target and all of its addresses. One bad address refuses the whole name, because which address is used
 * is random. Pure.
 *
 * A special address (private, loopback, metadata…) needs a listed range inside its special block:
 * `10.0.0.0/8` opens 10.0.0.1; `0.0.0.0/0` means the public internet and doesn't.
 *
 * @param addresses all addresses of the name, resolved once; for an address, the address itself.
 * @param hostAddresses addresses of the runner's own interfaces.
 */
export function decideConnection(
  target: Target,
  addresses: readonly string[],
  network: NetworkBoundary,
  hostAddresses: readonly string[],
): NetworkDecision {
  const first = decideBeforeLookup(target, network);
  if (!first.allowed || network.mode === "on") return first;
  if (addresses.length === 0) return refused(`the host ${target.host} has no address`);
  const ranges = network.rules.filter(isRange);
  for (const address of addresses) {
    const complaint = whyClosed(address, ranges, { port: target.port, own: hostAddresses });
    if (complaint !== undefined) {
      return refused(
        target.kind === "address"
          ? complaint
          : `the host ${target.host} resolves to ${address}: ${complaint}`,
      );
    }
  }
  return first;
}

/** Whether a rule allows a connection to this target, judged by its name or literal address. Pure. */
export function matches(rule: NetworkRule, target: Target): boolean {
  if (!fitsPort(rule, target.port)) return false;
  if (rule.kind === "host") return target.kind === "name" && matchesName(rule, target.host);
  return target.kind === "address" && contains(parsedRange(rule), ipaddr.parse(target.host));
}

const defaultPorts: Readonly<Record<string, number>> = { "http:": 80, "ws:": 80, "https:": 443, "wss:": 443 };

/**
 * Whether a URL's destination, as it is written, is one that `decideConnection` would let through. A name isn't
 * resolved here: the connecting code checks its addresses. Pure.
 */
export function allowsDestination(rules: readonly NetworkRule[], url: URL): boolean {
  const port = url.port === "" ? (defaultPorts[url.protocol] ?? 0) : Number(url.port);
  const reading = readTarget(url.hostname, port);
  if (!reading.ok) return false;
  const { target } = reading;
  const network = { mode: "allowlist", rules } as const;
  const decision =
    target.kind === "name"
      ? decideBeforeLookup(target, network)
      : decideConnection(target, [target.host], network, []);
  return decision.allowed;
}

export interface ConnectionAddress {
  /** The port of the connection. Without it, a range with a port allows nothing. */
  readonly port?: number;
  /** Addresses of the runner's own interfaces. Default none. */
  readonly own?: readonly string[];
}

/**
 * Why no connection to an address is allowed, as in "10.0.0.1 is private, and no listed range names it"; undefined if
 * it is: the address is public, or a listed range includes it. Pure.
 */
export function whyClosed(
  text: string,
  ranges: readonly RangeRule[],
  { port, own = [] }: ConnectionAddress = {},
): string | undefined {
  // Canonical spelling only: `010.0.0.1` is 8.0.0.1 to one parser and 10.0.0.1 to another.
  if (isIP(text) === 0 || text.includes("%") || !ipaddr.isValid(text)) {
    return "not an address that can be checked";
  }
  const address = ipaddr.parse(text);
  const listing = ranges.filter((rule) => fitsPort(rule, port) && contains(parsedRange(rule), address));
  const block = specialBlockOf(address);
  if (block !== undefined && !listing.some((rule) => parsedRange(rule).prefix >= block.prefix)) {
    const tooWide =
      listing[0] === undefined ? "" : `; ${formatRule(listing[0])} is too wide to count as listing it`;
    return `${address.toString()} is ${block.meaning}, and no listed range names it${tooWide}`;
  }
  if (own.some((one) => isSame(one, address)) && !listing.some((rule) => parsedRange(rule).prefix > 0)) {
    return `${address.toString()} is an address of the runner's own host, and no listed range names it`;
  }
  return undefined;
}

function isSame(text: string, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return ipaddr.isValid(text) && ipaddr.parse(text).toString() === address.toString();
}

function matchesName(rule: HostRule, name: string): boolean {
  return rule.subdomains ? name.endsWith(`.${rule.name}`) : name === rule.name;
}

function fitsPort(rule: NetworkRule, port: number | undefined): boolean {
  return rule.port === undefined || rule.port === port;
}

function isRange(rule: NetworkRule): rule is RangeRule {
  return rule.kind === "range";
}

function parsedRange(rule: RangeRule): {
  readonly network: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefix: number;
} {
  const [network, prefix] = ipaddr.parseCIDR(rule.cidr);
  return { network, prefix };
}

function refused(reason: string): NetworkDecision {
  return { allowed: false, reason };
}

/** A block of addresses that aren't public, or that embed another address. */
interface SpecialBlock {
  /** Reads on after "10.0.0.1 is ...". */
  readonly meaning: string;
  readonly network: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefix: number;
}

/** Narrow blocks come before those that contain them. Source: IANA special-purpose registries, cloud vendors' docs. */
const written = [
  ["169.254.169.254/32", "a cloud's metadata service"],
  ["168.63.129.16/32", "a cloud's metadata service"],
  ["100.100.100.200/32", "a cloud's metadata service"],
  ["192.0.0.192/32", "a cloud's metadata service"],
  ["0.0.0.0/8", "the unspecified address, which means this host"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "a shared address of a carrier (RFC 6598)"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "reserved for documentation"],
  ["192.31.196.0/24", "reserved (AS112)"],
  ["192.52.193.0/24", "a relay (AMT)"],
  ["192.88.99.0/24", "a relay (6to4)"],
  ["192.168.0.0/16", "private"],
  ["192.175.48.0/24", "reserved (AS112)"],
  ["198.18.0.0/15", "reserved for benchmarks"],
  ["198.51.100.0/24", "reserved for documentation"],
  ["203.0.113.0/24", "reserved for documentation"],
  ["224.0.0.0/4", "multicast"],
  ["255.255.255.255/32", "broadcast"],
  ["240.0.0.0/4", "reserved"],
  ["::/128", "the unspecified address, which means this host"],
  ["::1/128", "loopback"],
  ["::ffff:0:0/96", "an IPv4 address written as IPv6"],
  ["::ffff:0:0:0/96", "an IPv4 address written as IPv6"],
  ["::/96", "an IPv4 address written as IPv6"],
  ["64:ff9b::/96", "NAT64: it represents an IPv4 address"],
  ["64:ff9b:1::/48", "NAT64: it represents an IPv4 address"],
  ["2001::/32", "Teredo: it represents an IPv4 address"],
  ["2002::/16", "6to4: it represents an IPv4 address"],
  ["2001:db8::/32", "reserved for documentation"],
  ["2001::/23", "reserved"],
  ["2620:4f:8000::/48", "reserved (AS112)"],
  ["3fff::/20", "reserved for documentation"],
  ["fd00:ec2::254/128", "a cloud's metadata service"],
  ["fd20:ce::254/128", "a cloud's metadata service"],
  ["fc00::/7", "private (ULA)"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private (site-local)"],
  ["ff00::/8", "multicast"],
] as const;

/** Parsed when an address is first checked: a start doesn't need it, and it costs as much as loading many modules. */
let parsed: Parsed | undefined;

interface Parsed {
  readonly blocks: readonly SpecialBlock[];
  readonly globalUnicast: ReturnType<typeof ipaddr.IPv6.parseCIDR>;
}

function parse(): Parsed {
  const blocks = written.map(([text, meaning]) => {
    const [network, prefix] = ipaddr.parseCIDR(text);
    return { meaning, network, prefix };
  });
  return { blocks, globalUnicast: ipaddr.IPv6.parseCIDR("2000::/3") };
}

/** The narrowest special block that contains the address; undefined for a public address. */
function specialBlockOf(address: ipaddr.IPv4 | ipaddr.IPv6): SpecialBlock | undefined {
  parsed ??= parse();
  const { blocks, globalUnicast } = parsed;
  const block = blocks.find((candidate) => contains(candidate, address));
  if (block !== undefined) return block;
  const isPublic =
    address.range() === "unicast" && (address.kind() === "ipv4" || address.match(globalUnicast));
  return isPublic
    ? undefined
    : { meaning: "not an address of the public internet", network: address, prefix: 1 };
}

/** Whether the address is in the range. An IPv4 address is never in an IPv6 range, in any spelling. */
function contains(
  range: { readonly network: ipaddr.IPv4 | ipaddr.IPv6; readonly prefix: number },
  address: ipaddr.IPv4 | ipaddr.IPv6,
): boolean {
  return range.network.kind() === address.kind() && address.match([range.network, range.prefix]);
}
