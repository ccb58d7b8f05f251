import type { RangeRule } from "@ambit/core/plugin";
import { whyClosed } from "./decide.js";
import { rangeOf } from "./destination.js";

/** Allowed destinations besides the public internet: special addresses, each by a range inside its block. */
export type AddressPolicy = readonly RangeRule[];

/** The deployer's settings for connections that the runner itself makes to a caller's destination. */
export interface OperatorAddresses {
  /** Whether private and loopback addresses are allowed. Link-local and metadata addresses never are. */
  readonly privateHosts: "allow" | "refuse";
  /** Further allowed ranges; a metadata service only by its own address. */
  readonly allowedRanges: readonly string[];
}

/** The ranges of `privateHosts: "allow"`. A metadata service inside has a narrower block, so it stays refused. */
const neighbourhood: AddressPolicy = [
  { kind: "range", cidr: "10.0.0.0/8", family: 4 },
  { kind: "range", cidr: "100.64.0.0/10", family: 4 },
  { kind: "range", cidr: "127.0.0.0/8", family: 4 },
  { kind: "range", cidr: "172.16.0.0/12", family: 4 },
  { kind: "range", cidr: "192.168.0.0/16", family: 4 },
  { kind: "range", cidr: "::1/128", family: 6 },
  { kind: "range", cidr: "fc00::/7", family: 6 },
];

/** Pure. */
export function operatorPolicy({ privateHosts, allowedRanges }: OperatorAddresses): AddressPolicy {
  const opened = allowedRanges.map(rangeOf);
  return privateHosts === "allow" ? [...neighbourhood, ...opened] : opened;
}

/**
 * Why a connection to this address and port is refused, as in "10.0.0.1 is private, and no listed range names it";
 * undefined if it is allowed. Every policy must allow it. Pure.
 */
export function whyForbidden(
  policies: readonly AddressPolicy[],
  address: string,
  port: number,
): string | undefined {
  for (const policy of policies) {
    const reason = whyClosed(address, policy, { port });
    if (reason !== undefined) return reason;
  }
  return undefined;
}
