import { isIP } from "node:net";
import { decideBeforeLookup, type NetworkBoundary, readTarget } from "@ambit/core/plugin";
import { z } from "zod";
import type { CanaryConfig, Destination } from "../config.js";

export interface Attempt {
  /** `github.com:443`, or `lookup of github.com`. */
  readonly id: string;
  readonly kind: "tls" | "http" | "connect" | "lookup";
  readonly host: string;
  readonly port: number;
}

export const outcomesSchema = z.record(z.string(), z.strictObject({ reached: z.boolean(), how: z.string() }));
/** By attempt. */
export type Outcomes = z.output<typeof outcomesSchema>;

/** Everything that the canary tries: each destination, and the lookup of each name. */
export function allAttempts({ address, name, forbidden }: CanaryConfig): readonly Attempt[] {
  const connections = [address, name, ...forbidden].map(connectionTo);
  const names = new Set(connections.map(({ host }) => host).filter((host) => isIP(host) === 0));
  const lookups = [...names].map(
    (host) => ({ id: `lookup of ${host}`, kind: "lookup", host, port: 53 }) as const,
  );
  return [...new Map([...connections, ...lookups].map((attempt) => [attempt.id, attempt])).values()];
}

export function idOf({ host, port }: Destination): string {
  return `${host}:${port}`;
}

/** Those that must fail under a boundary. Looking a name up is no connection: only "nothing at all" forbids it. */
export function attemptsAgainst(network: NetworkBoundary, canary: CanaryConfig): readonly Attempt[] {
  if (network.mode === "on") return [];
  return allAttempts(canary).filter(({ kind, host, port }) => {
    if (kind === "lookup") return network.mode === "off";
    const reading = readTarget(host, port);
    return reading.ok && !decideBeforeLookup(reading.target, network).allowed;
  });
}

export function reachedIn(outcomes: Outcomes): readonly string[] {
  return Object.entries(outcomes)
    .filter(([, { reached }]) => reached)
    .map(([id]) => id);
}

function connectionTo(destination: Destination): Attempt {
  const kind = destination.port === 443 ? "tls" : destination.port === 80 ? "http" : "connect";
  return { id: idOf(destination), kind, ...destination };
}
