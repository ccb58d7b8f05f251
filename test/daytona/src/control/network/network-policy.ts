import { ApiError, badRequest } from "../../http/api-error.js";
import type { ResolvedOptions } from "../../options.js";
import type { Network } from "../../runner/messages.js";
import {
  applied,
  type NetworkChange,
  type NetworkSettings,
  overrides,
  unlimited,
} from "./network-settings.js";

type Organization = ResolvedOptions["organization"];

/** The part of a sandbox's settings that the organisation applies. */
export function appliedIn(organization: Organization, settings: NetworkSettings): Network {
  if (organization.networkOverride === "ignored") return unlimited;
  const network = applied(settings);
  return organization.domainLists === "ignored" ? { ...network, domains: null } : network;
}

/** At creation: throws the API's error if the organisation may not limit its sandboxes. */
export function allowCreate(organization: Organization, settings: NetworkSettings): void {
  if (organization.networkOverride === "refused" && overrides(settings))
    throw new ApiError(403, "Network settings cannot be overridden for organizations on this tier");
}

/** At a change: any setting is refused, with 400 (`apps/api/src/sandbox/controllers/sandbox.controller.ts`). */
export function allowUpdate(organization: Organization, change: NetworkChange): void {
  if (organization.networkOverride === "refused") {
    throw badRequest(
      "Network access is restricted and cannot be overridden at the sandbox level. See https://www.daytona.io/docs/en/network-limits/#tier-based-network-restrictions",
    );
  }
  const { networkBlockAll, networkAllowList, domainAllowList } = change;
  if (networkBlockAll === undefined && networkAllowList === undefined && domainAllowList === undefined)
    throw badRequest("At least one of networkBlockAll, networkAllowList or domainAllowList must be provided");
}
