import { isIP } from "node:net";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { decideBeforeLookup, readTarget } from "@ambit/egress";
import { z } from "zod";
import type { CanaryConfig, Destination } from "../config.js";

export type Attempt = Connection | GatewayAttempt | AddressAttempt;

interface Connection {
  /** `github.com:443`, `9.9.9.9:53 (UDP)`, or `lookup of github.com`. */
  readonly id: string;
  readonly kind: "tls" | "http" | "connect" | "datagram" | "lookup";
  readonly host: string;
  readonly port: number;
}

/** To the gateway of the sandbox's default route, whose address isn't known outside. */
interface GatewayAttempt {
  readonly id: typeof gatewayId;
  readonly kind: "gateway";
  readonly ports: readonly number[];
}

/** Whether there is an IPv6 address with more than link scope. Rules for IPv4 don't apply to it. */
interface AddressAttempt {
  readonly id: typeof addressId;
  readonly kind: "address6";
}

export const gatewayId = "its gateway";
export const addressId = "an IPv6 address of its own";

export const outcomesSchema = z.record(
  z.string(),
  z.strictObject({
    reached: z.boolean(),
    how: z.string(),
    /** Where it led, if the attempt names no destination. */
    at: z.array(z.strictObject({ host: z.ipv4(), port: z.int() })).optional(),
  }),
);
/** Outcomes by attempt. */
export type Outcomes = z.output<typeof outcomesSchema>;

/**
 * All attempts of the canary: each destination, a datagram to each address, the lookup of each name, the
 * gateway, and IPv6.
 */
export function allAttempts(canary: CanaryConfig): readonly Attempt[] {
  const { address, name, forbidden, address6, gatewayPorts } = canary;
  const connections = [address, name, ...forbidden, address6].map(connectionTo);
  const hosts = new Set(connections.map(({ host }) => host));
  const names = [...hosts].filter((host) => isIP(host) === 0);
  // To any public resolver: a query that arrives can carry data out.
  const datagrams = [...hosts]
    .filter((host) => isIP(host) === 4)
    .map((host) => ({ id: `${host}:53 (UDP)`, kind: "datagram", host, port: 53 }) as const);
  const lookups = names.map((host) => ({ id: `lookup of ${host}`, kind: "lookup", host, port: 53 }) as const);
  const others = [
    { id: gatewayId, kind: "gateway", ports: gatewayPorts },
    { id: addressId, kind: "address6" },
  ] as const;
  const all: readonly Attempt[] = [...connections, ...datagrams, ...lookups, ...others];
  return [...new Map(all.map((attempt) => [attempt.id, attempt])).values()];
}

export function idOf({ host, port }: Destination): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The attempts that must fail under a boundary. A lookup isn't a connection: only an empty allowlist forbids it. */
export function attemptsAgainst(network: NetworkBoundary, canary: CanaryConfig): readonly Attempt[] {
  if (network.mode === "on") return [];
  return allAttempts(canary).filter((attempt) => {
    if (attempt.kind === "gateway" || attempt.kind === "address6") return true;
    if (attempt.kind === "lookup") return network.mode === "off";
    return !isAllowed(attempt, network);
  });
}

function isAllowed({ host, port }: Destination, network: NetworkBoundary): boolean {
  const reading = readTarget(host, port);
  return reading.ok && decideBeforeLookup(reading.target, network).allowed;
}

export function reachedIn(outcomes: Outcomes): readonly string[] {
  return Object.entries(outcomes)
    .filter(([, { reached }]) => reached)
    .map(([id]) => id);
}

/** What was reached although the boundary doesn't allow it, and how: a list may name a range that the gateway is in. */
export function leaksIn(outcomes: Outcomes, network: NetworkBoundary): readonly string[] {
  return Object.entries(outcomes)
    .filter(([, { reached, at }]) => reached && !at?.every((one) => isAllowed(one, network)))
    .map(([id, { how }]) => `${id} (${how})`);
}

function connectionTo(destination: Destination): Connection {
  const kind = destination.port === 443 ? "tls" : destination.port === 80 ? "http" : "connect";
  return { id: idOf(destination), kind, ...destination };
}
