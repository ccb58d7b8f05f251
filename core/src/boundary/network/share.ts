import ipaddr from "ipaddr.js";
import type { NetworkRule, RangeRule } from "../boundary.js";

/** Addresses as numbers, in which single ones are rounded: the first, and the one behind the last. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** All IPv4 addresses, and all public IPv6 addresses (2000::/3). */
const families = [
  { family: 4, all: { from: 0, to: 2 ** 32 } },
  { family: 6, all: { from: 2 ** 125, to: 2 ** 126 } },
] as const;

/**
 * The part of all addresses that ranges may not hold: a sixteenth is sixteen networks of `/8`, which is more than all private ones
 * together, and than any one provider has. More is no list of destinations, but one of what is left out.
 */
const wideShare = 1 / 16;

/**
 * Whether ranges hold a sixteenth of the IPv4 addresses together, or of the public IPv6 addresses, on whatever ports:
 * `0.0.0.0/0`, sixteen ranges of `/8`, `2000::/3`. Names don't count. Pure.
 */
export function listsWideRanges(rules: readonly NetworkRule[]): boolean {
  return families.some(({ family, all }) => {
    const spans = rules.flatMap((rule) =>
      rule.kind === "range" && rule.family === family ? [spanOf(rule)] : [],
    );
    return countIn(spans, all) >= wideShare * (all.to - all.from);
  });
}

/** How many of `all` the spans hold; one that several hold counts once. */
function countIn(spans: readonly Span[], all: Span): number {
  let count = 0;
  let counted = all.from;
  for (const { from, to } of spans.toSorted((one, other) => one.from - other.from)) {
    const end = Math.min(to, all.to);
    count += Math.max(0, end - Math.max(from, counted));
    counted = Math.max(counted, end);
  }
  return count;
}

function spanOf({ cidr }: RangeRule): Span {
  const [network, prefix] = ipaddr.parseCIDR(cidr);
  const bytes = network.toByteArray();
  const from = bytes.reduce((number, byte) => 256 * number + byte, 0);
  return { from, to: from + 2 ** (8 * bytes.length - prefix) };
}
