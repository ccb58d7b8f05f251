import { type Boundary, formatRule } from "@ambit/core/plugin";
import {
  type AddressPolicy,
  addressesOfThisHost,
  allowsDestination,
  operatorPolicy,
  portOf,
  rangeOf,
  whyUrlForbidden,
} from "@ambit/egress";
import type { CallbackConfig } from "../config.js";

export interface OpenRoute {
  readonly open: true;
  /** Every one must let an address through. */
  readonly policies: readonly AddressPolicy[];
  readonly port: number;
  /** Equal for routes whose connections may be shared. */
  readonly key: string;
}

/** Whether and how a run may reach an origin. */
export type OriginRoute = OpenRoute | { readonly open: false; readonly reason: string };

/** Depends on the URL's origin only, not on its path. Pure. */
export function routeTo(url: URL, boundary: Boundary, config: CallbackConfig): OriginRoute {
  const policies = policiesFor(url, boundary, config);
  if (policies === undefined)
    return { open: false, reason: `${url.host} is not on the run's network allowlist` };
  const reason = whyUrlForbidden(policies, url);
  if (reason !== undefined) return { open: false, reason };
  const port = portOf(url);
  const key = JSON.stringify([
    port,
    policies.map(({ ranges, own }) => [ranges.map(formatRule).sort(), own !== undefined]),
  ]);
  return { open: true, policies, port, key };
}

/**
 * The boundary once more, at the time of the call: the plan let this destination through, and nothing that has
 * happened since may have led the call elsewhere. Undefined for a destination that is refused.
 */
function policiesFor(
  url: URL,
  boundary: Boundary,
  config: CallbackConfig,
): readonly AddressPolicy[] | undefined {
  const operator = operatorPolicy(config);
  const { network, enforcement } = boundary;
  if (network.mode === "on") return [operator];
  if (network.mode === "allowlist" && allowsDestination(network.rules, url))
    return [operator, boundaryPolicy(boundary, config)];
  // Off the list, only "best_effort" can have accepted it, and the receipt names it as outside.
  return enforcement === "best_effort" ? [operator] : undefined;
}

/** As for a sandbox: a listed name may lead to public addresses, and to others or this host only by a listed range. */
export function boundaryPolicy({ network }: Boundary, { allowedRanges }: CallbackConfig): AddressPolicy {
  const listed = network.rules.filter((rule) => rule.kind === "range");
  return { ranges: [...listed, ...allowedRanges.map(rangeOf)], own: addressesOfThisHost };
}
