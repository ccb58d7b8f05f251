import ipaddr from "ipaddr.js";
import type { CallbackConfig } from "./config.js";

/** Which addresses a connection may lead to. */
export interface AddressPolicy {
  /** Whether private and loopback addresses are open. */
  readonly privateHosts: "allow" | "refuse";
  /** CIDR ranges that are open whatever they are. */
  readonly ranges: readonly string[];
}

/** Cloud metadata services at addresses that no special range covers, or that a private range would let in. */
const metadataAddresses = new Set(["168.63.129.16", "100.100.100.200", "fd00:ec2::254"]);

/** What `privateHosts: "allow"` opens beyond public addresses. */
const neighbourhood: readonly string[] = ["private", "loopback", "uniqueLocal", "carrierGradeNat"];

/** What the deployer lets any callback reach, whatever a run's boundary says. */
export function operatorPolicy({ privateHosts, allowedRanges }: CallbackConfig): AddressPolicy {
  return { privateHosts, ranges: allowedRanges };
}

/**
 * Why a connection to this address is refused, as in "is a link-local address"; undefined when it may be made.
 * Every policy must let it through.
 */
export function whyForbidden(policies: readonly AddressPolicy[], address: string): string | undefined {
  for (const policy of policies) {
    const reason = whyClosed(policy, address);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function whyClosed(policy: AddressPolicy, address: string): string | undefined {
  // `process` unwraps IPv4-mapped IPv6: ::ffff:127.0.0.1 is judged as 127.0.0.1.
  const parsed = ipaddr.process(address);
  if (policy.ranges.some((cidr) => contains(cidr, parsed))) return undefined;
  if (metadataAddresses.has(parsed.toString())) return "is a metadata address";
  const range = parsed.range();
  if (range === "unicast" || (policy.privateHosts === "allow" && neighbourhood.includes(range)))
    return undefined;
  return `is a ${wording[range] ?? "special-purpose"} address`;
}

const wording: Readonly<Record<string, string>> = {
  private: "private",
  uniqueLocal: "private",
  carrierGradeNat: "private",
  loopback: "loopback",
  linkLocal: "link-local",
};

function contains(cidr: string, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const [network, prefix] = ipaddr.parseCIDR(cidr);
  return network.kind() === address.kind() && address.match(network, prefix);
}
