import type { RangeRule } from "@ambit/core/plugin";
import { whyClosed } from "./decide.js";
import { literalAddress, portOf, rangeOf } from "./destination.js";
import { addressesOfThisHost } from "./guarded-lookup.js";

/** Allowed destinations besides the public internet. */
export interface AddressPolicy {
  /** Special addresses, each by a range inside its block. */
  readonly ranges: readonly RangeRule[];
  /** Addresses that are refused unless a range lists them, public ones too: those of this host. Default none. */
  readonly own?: () => readonly string[];
}

/** The deployer's settings for connections that the runner itself makes to a caller's destination. */
export interface OperatorAddresses {
  /**
   * Whether private, loopback and this host's own addresses are allowed. Link-local and metadata addresses never are.
   * `auto` until it is settled: as on a server without tenants.
   */
  readonly privateHosts: "allow" | "refuse" | "auto";
  /** Further allowed ranges; a metadata service only by its own address. */
  readonly allowedRanges: readonly string[];
}

/**
 * Settles `privateHosts: "auto"`: a platform that is the only caller is usually a neighbour, and tenants are people whom
 * the deployer may not trust. Pure.
 */
export function resolvePrivateHosts<Settings extends Pick<OperatorAddresses, "privateHosts">>(
  settings: Settings,
  hasTenants: boolean,
): Settings {
  if (settings.privateHosts !== "auto") return settings;
  return { ...settings, privateHosts: hasTenants ? "refuse" : "allow" };
}

/** Private and loopback addresses. A metadata service among them has a narrower block, so it stays refused. */
export const privateRanges: readonly RangeRule[] = [
  { kind: "range", cidr: "10.0.0.0/8", family: 4 },
  { kind: "range", cidr: "100.64.0.0/10", family: 4 },
  { kind: "range", cidr: "127.0.0.0/8", family: 4 },
  { kind: "range", cidr: "172.16.0.0/12", family: 4 },
  { kind: "range", cidr: "192.168.0.0/16", family: 4 },
  { kind: "range", cidr: "::1/128", family: 6 },
  { kind: "range", cidr: "fc00::/7", family: 6 },
];

/** Pure, except for the addresses of this host. */
export function operatorPolicy({ privateHosts, allowedRanges }: OperatorAddresses): AddressPolicy {
  const opened = allowedRanges.map(rangeOf);
  return privateHosts === "refuse"
    ? { ranges: opened, own: addressesOfThisHost }
    : { ranges: [...privateRanges, ...opened] };
}

/**
 * Why a connection to this address and port is refused, as in "10.0.0.1 is private, and no listed range names it";
 * undefined if it is allowed. Every policy must allow it.
 */
export function whyForbidden(
  policies: readonly AddressPolicy[],
  address: string,
  port: number,
): string | undefined {
  for (const policy of policies) {
    const reason = whyClosed(address, policy.ranges, { port, own: policy.own?.() ?? [] });
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** The same for a URL whose host is an address; undefined for a name, which is judged when it is resolved. */
export function whyUrlForbidden(policies: readonly AddressPolicy[], url: URL): string | undefined {
  const address = literalAddress(url);
  return address === undefined ? undefined : whyForbidden(policies, address, portOf(url));
}
