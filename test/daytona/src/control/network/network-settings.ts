import { isIPv4 } from "node:net";
import { badRequest } from "../../http/api-error.js";
import type { Network } from "../../runner/messages.js";

/** A sandbox's network settings in their wire format. */
export interface NetworkSettings {
  readonly networkBlockAll: boolean;
  readonly networkAllowList?: string | undefined;
  readonly domainAllowList?: string | undefined;
}

/** The settings in a create or update request: absent ones stay unchanged, an empty list clears. */
export interface NetworkChange {
  readonly networkBlockAll?: boolean | undefined;
  readonly networkAllowList?: string | undefined;
  readonly domainAllowList?: string | undefined;
}

const maxEntries = 10;
const domain = /^(\*\.)?([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,}$/;

const entriesOf = (list: string) => list.split(",").map((entry) => entry.trim());

/** Throws the API's error for an invalid list of ranges. */
export function validateNetworkAllowList(list: string): void {
  const networks = entriesOf(list);
  for (const network of networks) {
    if (network === "") continue;
    const [address = "", length] = network.split("/");
    if (!isIPv4(address))
      throw badRequest(
        `Invalid IP address: "${address}" in network "${network}". Must be a valid IPv4 address`,
      );
    if (!length)
      throw badRequest(`Invalid network format: "${network}". Missing CIDR prefix length (e.g., /24)`);
    const prefix = Number.parseInt(length, 10);
    if (!(prefix >= 0 && prefix <= 32))
      throw badRequest(`Invalid CIDR prefix length: ${network}. Prefix must be between 0 and 32`);
  }
  if (networks.length > maxEntries)
    throw badRequest(`Network allow list cannot contain more than ${maxEntries} networks`);
}

export function validateDomainAllowList(list: string): void {
  const domains = entriesOf(list);
  for (const entry of domains)
    if (entry !== "" && !domain.test(entry))
      throw badRequest(`Invalid domain: "${entry}". Must be a valid domain name`);
  if (domains.length > maxEntries)
    throw badRequest(`Domain allow list cannot contain more than ${maxEntries} domains`);
}

const isSet = (list: string | undefined): list is string => list !== undefined && list.trim() !== "";

/** Whether a request has network settings, which the lower tiers refuse. */
export const overrides = (change: NetworkChange) =>
  change.networkBlockAll === true || isSet(change.networkAllowList) || isSet(change.domainAllowList);

export function created(change: NetworkChange): NetworkSettings {
  const { networkBlockAll = false, networkAllowList, domainAllowList } = change;
  if (networkAllowList !== undefined) validateNetworkAllowList(networkAllowList);
  if (domainAllowList !== undefined) validateDomainAllowList(domainAllowList);
  return { networkBlockAll, networkAllowList, domainAllowList };
}

/** Blocking clears the ranges, and ranges end the blocking; unblocking clears the ranges too. */
export function updated(settings: NetworkSettings, change: NetworkChange): NetworkSettings {
  let { networkBlockAll, networkAllowList, domainAllowList } = settings;
  if (change.domainAllowList !== undefined) {
    validateDomainAllowList(change.domainAllowList);
    domainAllowList = isSet(change.domainAllowList) ? change.domainAllowList : undefined;
  }
  if (change.networkBlockAll !== undefined) {
    networkBlockAll = change.networkBlockAll;
    if (networkBlockAll) networkAllowList = undefined;
  }
  if (change.networkAllowList !== undefined) {
    validateNetworkAllowList(change.networkAllowList);
    networkAllowList = isSet(change.networkAllowList) ? change.networkAllowList : undefined;
    if (networkAllowList !== undefined) networkBlockAll = false;
  } else if (change.networkBlockAll === false) {
    networkAllowList = undefined;
  }
  return { networkBlockAll, networkAllowList, domainAllowList };
}

const listed = (list: string | undefined) =>
  isSet(list) ? entriesOf(list).filter((entry) => entry !== "") : null;

/** The effective network rules. Blocking takes precedence over both lists. */
export function applied(settings: NetworkSettings): Network {
  return {
    blockAll: settings.networkBlockAll,
    allowList: listed(settings.networkAllowList),
    domains: listed(settings.domainAllowList),
  };
}

export const unlimited: Network = { blockAll: false, allowList: null, domains: null };
