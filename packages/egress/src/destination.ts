import {
  type ActorGap,
  type NetworkBoundary,
  parseNetworkRule,
  type RangeRule,
  readHost,
} from "@ambit/core/plugin";
import { allowsDestination } from "./decide.js";

/** A URL's port, or the default of its scheme. */
export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}

/** The host as an address without brackets, if it is one. */
export function literalAddress({ hostname }: URL): string | undefined {
  const reading = readHost(hostname);
  return reading.ok && reading.kind === "address" ? reading.host : undefined;
}

/** An allowlist entry for only this destination: `example.com:443`. */
export function entryFor(url: URL): string {
  return `${url.hostname.replace(/\.$/, "")}:${portOf(url)}`;
}

export interface DestinationUse {
  /** Begins the reason; the destination follows: "its calls are posted from the runner to". */
  readonly connects: string;
  /** Another way to close the gap than listing the destination: "remove the tool". */
  readonly otherwise: string;
}

/**
 * The gap of an actor that connects from the runner: its destination is egress of the run, so it must be on
 * the sandbox's allowlist. Undefined if it is, or if the network isn't restricted. Pure.
 */
export function destinationGap(
  network: NetworkBoundary,
  url: URL,
  { connects, otherwise }: DestinationUse,
): ActorGap | undefined {
  if (network.mode === "on" || allowsDestination(network.rules, url)) return undefined;
  const entry = entryFor(url);
  const fix = `list "${entry}" in sandboxPermission.network.allowlist, ${otherwise}`;
  if (network.mode === "off") {
    return { capability: "network.deny", reason: `${connects} ${entry}, and the network is off`, fix };
  }
  const capability = literalAddress(url) === undefined ? "network.allow-host" : "network.allow-cidr";
  return { capability, reason: `${connects} ${entry}, which is not on the list`, fix };
}

/** Whether the text is a range of addresses for every port: `10.0.0.0/8`, `::1`. For the schema of a configuration. */
export function isRange(text: string): boolean {
  return readRange(text) !== undefined;
}

/** A range that `isRange` accepts. @throws TypeError for anything else. */
export function rangeOf(text: string): RangeRule {
  const range = readRange(text);
  if (range === undefined) throw new TypeError(`${JSON.stringify(text)} is not a range of addresses`);
  return range;
}

function readRange(text: string): RangeRule | undefined {
  const parsed = parseNetworkRule(text);
  if (!("rule" in parsed) || parsed.rule.kind !== "range" || parsed.rule.port !== undefined) return undefined;
  return parsed.rule;
}
