import type { NetworkBoundary, NetworkRule } from "@ambit/core/plugin";

/** Where a listener of the probe answers: the only listed address. */
const listedAddress = "127.0.0.1";
const closedZone = "closed.test";

/**
 * One address of each block that isn't the public internet, with the block's length. A list of its own: one that the
 * proxy shares would lose a block on both sides. The last one is of no block, and not of the internet.
 */
const closedAddresses = `
  169.254.169.254/32 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32
  0.1.2.3/8 10.1.2.3/8 100.64.1.2/10 127.1.2.3/8
  169.254.1.2/16 172.20.1.2/12 192.0.0.8/24 192.0.2.1/24
  192.31.196.1/24 192.52.193.1/24 192.88.99.1/24 192.168.1.2/16
  192.175.48.1/24 198.18.1.2/15 198.51.100.1/24 203.0.113.1/24
  224.1.2.3/4 255.255.255.255/32 240.1.2.3/4 ::/128
  ::1/128 ::ffff:10.1.2.3/96 ::ffff:0:a01:203/96 ::a01:203/96
  64:ff9b::a01:203/96 64:ff9b:1::a01:203/48 2001:0:a01:203::1/32 2002:a01:203::1/16
  2001:db8::1/32 2001:10::1/23 2620:4f:8000::1/48 3fff::1/20
  fd00:ec2::254/128 fd20:ce::254/128 fd12::1/7 fe80::1/10
  fec0::1/10 ff0e::1/8
  4000::1/1`
  .trim()
  .split(/\s+/)
  .map((text) => {
    const [address = "", prefix = ""] = text.split("/");
    return { address, prefix: Number(prefix) };
  });

/** Names that are listed, and the addresses of each. The first one answers, so that an open way is seen. */
const listedNames: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...closedAddresses.map(
    ({ address }, index) => [`b${index}.${closedZone}`, [listedAddress, address]] as const,
  ),
  // A listed address in a spelling that isn't listed, and a closed address in front of the listed one.
  [`mapped.${closedZone}`, [listedAddress, `::ffff:${listedAddress}`]],
  [`first.${closedZone}`, ["127.0.0.2", listedAddress]],
]);

const openName = "ok.test";
/** Of another port than the listener's. */
const portName = "port.test";
/** Not listed, and like a listed name. None may be looked up: the lookup itself would carry data out. */
const unlistedNames: readonly string[] = [
  closedZone,
  `look-alike${closedZone}`,
  `b0.${closedZone}.other.test`,
  `a.${openName}`,
  `look-alike${openName}`,
  `${openName}.other.test`,
  portName,
];

/**
 * The rules of an allowlist, tried one by one: requests through a sandbox's proxy to `hosts`, of which exactly `open`
 * may be answered by a listener at 127.0.0.1. Every name leads there first, so a missing rule is seen without traffic to
 * another host.
 */
export class EgressRules {
  static readonly hosts: readonly string[] = [openName, ...listedNames.keys(), ...unlistedNames];
  static readonly open: readonly string[] = [openName];
  /** What they show, for evidence. */
  static readonly shown =
    `${closedAddresses.length} names with an address of a special block, and names like a listed one, were refused, the latter without a lookup`;
  readonly #lookups = new Map<string, number>();

  /**
   * @param port of the listener.
   * @param isWide whether each special block is listed as a part of a range that is too wide to count. Default: not
   * listed at all.
   */
  static boundary(port: number, isWide = false): NetworkBoundary {
    const ranges = isWide ? closedAddresses : [];
    const rules: NetworkRule[] = [
      range(listedAddress, 32),
      { kind: "host", name: openName, subdomains: false },
      { kind: "host", name: portName, subdomains: false, port: port === 9 ? 10 : 9 },
      { kind: "host", name: closedZone, subdomains: true },
      ...ranges.map(({ address, prefix }) => range(address, prefix - 1)),
    ];
    return { mode: "allowlist", rules };
  }

  /** The sandbox's resolver. Another one per sandbox: it counts. */
  readonly lookup = async (name: string): Promise<readonly string[]> => {
    this.#lookups.set(name, (this.#lookups.get(name) ?? 0) + 1);
    return listedNames.get(name) ?? [listedAddress];
  };

  /**
   * What doesn't hold, in one sentence; undefined if everything does.
   *
   * @param answered those of `hosts` that the listener answered; each was requested once.
   */
  complaint(answered: readonly string[]): string | undefined {
    const silent = EgressRules.open.find((host) => !answered.includes(host));
    if (silent !== undefined) return `the control, the listed ${silent}, didn't answer`;
    const reached = answered.find((host) => !EgressRules.open.includes(host));
    if (reached !== undefined) {
      const addresses = listedNames.get(reached);
      return addresses === undefined
        ? `${reached} was reached, which isn't listed`
        : `${reached} was reached, though it resolves to ${addresses.join(" and ")}`;
    }
    const leaked = unlistedNames.find((name) => this.#lookups.has(name));
    if (leaked !== undefined) return `${leaked} was looked up, though it isn't listed`;
    const count = this.#lookups.get(openName) ?? 0;
    return count === 1 ? undefined : `${openName} was looked up ${count} times for one request`;
  }
}

function range(address: string, prefix: number): NetworkRule {
  return { kind: "range", cidr: `${address}/${prefix}`, family: address.includes(":") ? 6 : 4 };
}
