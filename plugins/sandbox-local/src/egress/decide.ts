import ipaddr from "ipaddr.js";
import type { HostRule, Policy, RangeRule } from "./policy.js";
import { contains, specialBlockOf } from "./special-addresses.js";
import type { Target } from "./target.js";

export interface Decision {
  readonly allowed: boolean;
  /** One sentence for the operator, the agent and the receipt. */
  readonly reason: string;
  /** The rule that allowed it, as written. */
  readonly rule?: string;
}

const refused = (reason: string): Decision => ({ allowed: false, reason });

/**
 * The first half, before any name is resolved: a name that no host rule lists is never looked up, or the lookup
 * itself would carry data out. `allowed` means that `decide` may be asked.
 */
export function decideBeforeLookup(target: Target, policy: Policy): Decision {
  if (policy.mode === "deny-all") return refused("this run may not use the network");
  if (target.kind === "address") {
    const range = policy.ranges.find((candidate) => contains(candidate, ipaddr.parse(target.host)));
    return range === undefined
      ? refused(`the address ${target.host} is in no listed range`)
      : { allowed: true, reason: `listed as ${range.text}`, rule: range.text };
  }
  const rule = policy.hosts.find((candidate) => matches(candidate, target));
  if (rule !== undefined) return { allowed: true, reason: `listed as ${rule.text}`, rule: rule.text };
  const otherPort = policy.hosts.find((candidate) => matches({ ...candidate, port: target.port }, target));
  return refused(
    otherPort === undefined
      ? `the host ${target.host} is not on this run's list`
      : `the host ${target.host} is listed as ${otherPort.text}, not for port ${target.port}`,
  );
}

/**
 * Decides on a target and all of its addresses. One bad address refuses the whole name, because which one is
 * dialled is chance. Pure: the same input always gives the same answer.
 *
 * A special address (private, loopback, metadata...) needs a listed range that lies inside its special block:
 * `10.0.0.0/8` opens 10.0.0.1, `0.0.0.0/0` means the public internet and doesn't.
 *
 * @param addresses what the name resolved to, once; for an address, itself.
 * @param hostAddresses addresses of the runner's own interfaces.
 */
export function decide(
  target: Target,
  addresses: readonly string[],
  policy: Policy,
  hostAddresses: readonly string[],
): Decision {
  const first = decideBeforeLookup(target, policy);
  if (!first.allowed || policy.mode === "deny-all") return first;
  if (addresses.length === 0) return refused(`the host ${target.host} has no address`);
  const own = hostAddresses
    .filter((address) => ipaddr.isValid(address))
    .map((address) => ipaddr.parse(address).toString());
  for (const text of addresses) {
    const complaint = complaintAbout(text, policy.ranges, own);
    if (complaint !== undefined) {
      return refused(
        target.kind === "address" ? complaint : `the host ${target.host} leads to ${text}: ${complaint}`,
      );
    }
  }
  return first;
}

function complaintAbout(
  text: string,
  ranges: readonly RangeRule[],
  own: readonly string[],
): string | undefined {
  if (text.includes("%") || !ipaddr.isValid(text)) return "not an address that can be checked";
  const address = ipaddr.parse(text);
  const listing = ranges.filter((range) => contains(range, address));
  const block = specialBlockOf(address);
  if (block !== undefined && !listing.some((range) => range.prefix >= block.prefix)) {
    const tooWide = listing[0] === undefined ? "" : `; ${listing[0].text} is too wide to mean it`;
    return `${address.toString()} is ${block.meaning}, and no listed range names it${tooWide}`;
  }
  if (own.includes(address.toString()) && !listing.some((range) => range.prefix > 0)) {
    return `${address.toString()} is an address of the runner's own host, and no listed range names it`;
  }
  return undefined;
}

function matches(rule: HostRule, target: Target): boolean {
  if (target.kind !== "name" || (rule.port !== undefined && rule.port !== target.port)) return false;
  return rule.match === "exact" ? rule.name === target.host : target.host.endsWith(`.${rule.name}`);
}
