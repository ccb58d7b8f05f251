import type { Boundary } from "@ambit/core/plugin";
import {
  type AddressPolicy,
  addressesOfThisHost,
  allowsDestination,
  operatorPolicy,
  rangeOf,
} from "@ambit/egress";
import type { CallbackConfig } from "../config.js";

export type OriginAdmission =
  | { readonly admitted: true; readonly addresses: readonly AddressPolicy[] }
  | { readonly admitted: false; readonly reason: string };

/**
 * The boundary once more, at the time of the call: the plan let this destination through, and nothing that has
 * happened since may have led the call elsewhere. Pure.
 */
export function admit(url: URL, boundary: Boundary, config: CallbackConfig): OriginAdmission {
  const operator = operatorPolicy(config);
  const unlisted: OriginAdmission = { admitted: true, addresses: [operator] };
  const { network, enforcement } = boundary;
  if (network.mode === "on") return unlisted;
  if (network.mode === "allowlist" && allowsDestination(network.rules, url)) {
    return { admitted: true, addresses: [operator, boundaryPolicy(boundary, config)] };
  }
  // Off the list, only "best_effort" can have accepted it, and the receipt names it as outside.
  return enforcement === "best_effort"
    ? unlisted
    : { admitted: false, reason: `${url.host} is not on the run's network allowlist` };
}

/** As for a sandbox: a listed name may lead to public addresses, and to others or this host only by a listed range. */
export function boundaryPolicy({ network }: Boundary, { allowedRanges }: CallbackConfig): AddressPolicy {
  const listed = network.rules.filter((rule) => rule.kind === "range");
  return { ranges: [...listed, ...allowedRanges.map(rangeOf)], own: addressesOfThisHost };
}
