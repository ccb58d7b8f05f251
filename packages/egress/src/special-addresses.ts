import ipaddr from "ipaddr.js";

/** A block of addresses that aren't public, or that embed another address. */
export interface SpecialBlock {
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
export function specialBlockOf(address: ipaddr.IPv4 | ipaddr.IPv6): SpecialBlock | undefined {
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
export function contains(
  range: { readonly network: ipaddr.IPv4 | ipaddr.IPv6; readonly prefix: number },
  address: ipaddr.IPv4 | ipaddr.IPv6,
): boolean {
  return range.network.kind() === address.kind() && address.match([range.network, range.prefix]);
}
