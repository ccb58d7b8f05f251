import { type Boundary, formatRule } from "@ambit/core/plugin";
import { type AddressPolicy, literalAddress, portOf, whyForbidden } from "@ambit/egress";
import type { CallbackConfig } from "../config.js";
import { admit } from "./admission.js";

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
  const admission = admit(url, boundary, config);
  if (!admission.admitted) return { open: false, reason: admission.reason };
  const policies = admission.addresses;
  const port = portOf(url);
  // A name is checked when it is resolved; an address never is.
  const address = literalAddress(url);
  const reason = address === undefined ? undefined : whyForbidden(policies, address, port);
  if (reason !== undefined) return { open: false, reason };
  const key = JSON.stringify([
    port,
    policies.map(({ ranges, own }) => [ranges.map(formatRule).sort(), own !== undefined]),
  ]);
  return { open: true, policies, port, key };
}
