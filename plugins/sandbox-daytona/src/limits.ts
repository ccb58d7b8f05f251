import {
  type ActorGap,
  formatRule,
  type HiddenCredential,
  type Hiding,
  type HostRule,
  type NetworkBoundary,
  type NetworkRule,
  type RangeRule,
  type ResourceLimits,
} from "@ambit/core/plugin";
import type { DaytonaConfig } from "./config.js";

/** In the form that the platform takes when a sandbox is created. Absent fields aren't sent. */
export interface NetworkSettings {
  readonly networkBlockAll?: true;
  /** IPv4 ranges, separated by commas. */
  readonly networkAllowList?: string;
  /** Names and `*.suffix`, separated by commas. */
  readonly domainAllowList?: string;
}

/** Most entries of one list. Source: `network-validation.util.ts` of daytonaio/daytona at v0.190. */
const maxEntries = 10;
/** Names that the platform accepts. Same source. */
const acceptedName = /^(\*\.)?([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,}$/;

const elsewhere = 'name the sandbox "local"';

/** The boundary in the platform's terms, without what `networkGaps` reports. Pure. */
export function networkSettings({ mode, rules }: NetworkBoundary): NetworkSettings {
  if (mode === "on") return {};
  const ranges = rules.filter(isRange).map(({ cidr }) => cidr);
  const names = rules.filter(isHost).map(entryOf);
  // An empty list allows nothing, but to the platform it would mean no limit.
  if (mode === "off" || ranges.length + names.length === 0) return { networkBlockAll: true };
  return {
    ...(ranges.length === 0 ? {} : { networkAllowList: ranges.join(",") }),
    ...(names.length === 0 ? {} : { domainAllowList: names.join(",") }),
  };
}

export function networkGaps(
  { mode, rules }: NetworkBoundary,
  { wildcards }: { readonly wildcards: "allow" | "refuse" },
): readonly ActorGap[] {
  if (mode !== "allowlist") return [];
  const ranges = rules.filter(isRange);
  const hosts = rules.filter(isHost);
  const gaps: ActorGap[] = [];
  const add = (capability: ActorGap["capability"], reason: string, fix: string) =>
    gaps.push({ capability, reason, fix: `${fix}, or ${elsewhere}` });

  if (ranges.length > 0 && hosts.length > 0) {
    // The API answers 400 to two lists that aren't empty. Source: pull request 265 of daytona/clients.
    add("network.allow-host", "Daytona accepts names or ranges, not both", "list only names, or only ranges");
  }
  if (ranges.length > maxEntries) {
    const reason = `${ranges.length} ranges are listed, and Daytona accepts ${maxEntries}`;
    add("network.allow-cidr", reason, "list fewer or wider ranges");
  }
  if (hosts.length > maxEntries) {
    const reason = `${hosts.length} names are listed, and Daytona accepts ${maxEntries}`;
    add("network.allow-host", reason, "list fewer names, such as one *.suffix for several");
  }
  const ipv6 = ranges.filter(({ family }) => family === 6);
  if (ipv6.length > 0) {
    add("network.allow-cidr", `Daytona accepts only IPv4 ranges, not ${written(ipv6)}`, "remove them");
  }
  for (const [capability, kind] of [
    ["network.allow-cidr", ranges],
    ["network.allow-host", hosts],
  ] as const) {
    const bound = kind.filter(({ port }) => port !== undefined);
    if (bound.length === 0) continue;
    add(capability, `Daytona can't restrict a port, as ${written(bound)} requires`, "leave the ports out");
  }
  const unfit = hosts.filter((rule) => !acceptedName.test(entryOf(rule)));
  if (unfit.length > 0) {
    const reason = `Daytona doesn't accept ${written(unfit)}: it requires two labels, the last one of letters`;
    add("network.allow-host", reason, "list its addresses as ranges");
  }
  const wild = wildcards === "refuse" ? hosts.filter(({ subdomains }) => subdomains) : [];
  if (wild.length > 0) {
    const reason = `sandbox-daytona is set to refuse ${written(wild)}`;
    add("network.allow-host", reason, "list each name");
  }
  return gaps;
}

/**
 * Whether the platform can keep this credential outside: each host is a name that it accepts, and that the boundary
 * allows by name. The platform replaces a placeholder anywhere in a request to a host, so it can't restrict it to a
 * header, to methods, paths or reading, to a port, or to encoded values. Pure.
 */
export function takesSecret(credential: HiddenCredential, { mode, rules }: NetworkBoundary): Hiding {
  const { hosts, as, methods, paths, access, refresh } = credential;
  if (methods !== undefined || paths !== undefined || (access ?? "write") !== "write") {
    const fix = "omit methods, paths and access, or use a sandbox whose proxy Ambit runs";
    return { reason: "Daytona restricts a secret only by host", fix };
  }
  if (refresh !== undefined) {
    const fix = "omit refresh, or use a sandbox whose proxy Ambit runs";
    return { reason: "Daytona adds a secret by itself, so no new value can be asked for in time", fix };
  }
  if (as === "basic") {
    const fix = 'send it as "bearer" or in a separate header, or use a sandbox whose proxy Ambit runs';
    return { reason: "Daytona doesn't recognise an encoded placeholder", fix };
  }
  const listed = rules.filter(isHost).map(entryOf);
  for (const host of hosts) {
    if (!acceptedName.test(host)) {
      const fix = "name a host of two labels or more, without a port";
      return { reason: `Daytona accepts no secret for ${host}`, fix };
    }
    const isListed = listed.some(
      (entry) => entry === host || (entry.startsWith("*.") && host.endsWith(entry.slice(1))),
    );
    if (mode === "on" || (mode === "allowlist" && isListed)) continue;
    const fix = `list "${host}" in sandboxPermission.network.allowlist`;
    return { reason: `${host} isn't on the allowlist`, fix };
  }
  return hosts.length > 0 || { reason: "it has no host", fix: "name its hosts" };
}

const isRange = (rule: NetworkRule): rule is RangeRule => rule.kind === "range";
const isHost = (rule: NetworkRule): rule is HostRule => rule.kind === "host";
const entryOf = ({ name, subdomains }: HostRule) => (subdomains ? `*.${name}` : name);
const written = (rules: readonly NetworkRule[]) => rules.map(formatRule).join(", ");

/** In the platform's units: cores, GiB, GiB. Absent fields aren't sent. */
export interface ResourceSettings {
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
}

const mibInGib = 1_024;

/** Without what `resourceGaps` reports, which the platform can't express. Pure. */
export function resourceSettings({ cpus, memoryMb, diskMb }: ResourceLimits): ResourceSettings {
  return {
    ...(cpus === undefined ? {} : { cpu: cpus }),
    ...(memoryMb === undefined ? {} : { memory: memoryMb / mibInGib }),
    ...(diskMb === undefined ? {} : { disk: diskMb / mibInGib }),
  };
}

export function resourceGaps(
  { cpus, memoryMb, diskMb, processes }: ResourceLimits,
  { image, maximum }: Pick<DaytonaConfig, "image" | "maximum">,
): readonly ActorGap[] {
  const kinds = [
    {
      capability: "resources.memory",
      field: "memoryMb",
      value: memoryMb,
      unit: mibInGib,
      max: maximum.memoryGib,
      what: "GiB of memory",
    },
    {
      capability: "resources.cpu",
      field: "cpus",
      value: cpus,
      unit: 1,
      max: maximum.cpus,
      what: "cores",
    },
    {
      capability: "resources.disk",
      field: "diskMb",
      value: diskMb,
      unit: mibInGib,
      max: maximum.diskGib,
      what: "GiB of disk",
    },
  ] as const;
  const gaps: ActorGap[] = [];
  for (const { capability, field, value, unit, max, what } of kinds) {
    if (value === undefined) continue;
    const below = Math.floor(value / unit) * unit;
    if (image === undefined) {
      gaps.push({
        capability,
        reason: "a sandbox made from a snapshot has the snapshot's size",
        fix: `set sandbox-daytona's image, leave ${field} out, or name the sandbox "local"`,
      });
    } else if (value % unit !== 0) {
      gaps.push({
        capability,
        reason: `Daytona accepts whole ${what}, not ${value / unit}`,
        fix: `set ${field} to ${below > 0 ? `${below} or ` : ""}${below + unit}`,
      });
    } else if (value > max * unit) {
      gaps.push({
        capability,
        reason: `the organisation allows one sandbox ${max} ${what}`,
        fix: `set ${field} to ${max * unit} at most, or raise sandbox-daytona's maximum with the organisation's limit`,
      });
    }
  }
  if (processes !== undefined) {
    gaps.push({
      capability: "resources.processes",
      reason: "Daytona can't limit processes",
      fix: 'leave processes out, or name the sandbox "local"',
    });
  }
  return gaps;
}
