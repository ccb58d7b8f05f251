import { isIP } from "node:net";
import { type Attempts, lookProgram, type Reached, readLook } from "@ambit/attacks/inside";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { decideBeforeLookup, readTarget } from "@ambit/egress";
import type { CanaryConfig, CanaryDestination, DaytonaConfig } from "../config.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";

type NetworkAttempt =
  | {
      readonly id: string;
      readonly try: "answer" | "datagram" | "query";
      readonly host: string;
      readonly port: number;
    }
  /** To the gateway of the sandbox's default route, whose address isn't known outside. */
  | { readonly id: typeof gatewayId; readonly try: "gateway"; readonly ports: readonly number[] }
  /** Whether there is an IPv6 address with more than link scope. Rules for IPv4 don't apply to it. */
  | { readonly id: typeof addressId; readonly try: "address6" };

const gatewayId = "its gateway";
export const addressId = "an IPv6 address of its own";

/** The attempts of the catalogue that reach out, by id: `github.com:443`, `9.9.9.9:53 (UDP)`, `lookup of github.com`. */
type NetworkAttempts = Attempts<NetworkAttempt["try"]>;

/**
 * All attempts of the canary: each destination, a datagram to each address, the lookup of each name, the
 * gateway, and IPv6.
 */
export const allAttempts = (canary: CanaryConfig): NetworkAttempts => byId(attemptsOf(canary), canary);

function attemptsOf(canary: CanaryConfig): readonly NetworkAttempt[] {
  const { address, name, forbidden, address6, gatewayPorts } = canary;
  const connections = [address, name, ...forbidden, address6].map(
    (to) => ({ id: idOf(to), try: "answer", ...to }) as const,
  );
  const hosts = new Set(connections.map(({ host }) => host));
  const names = [...hosts].filter((host) => isIP(host) === 0);
  // To any public resolver: a query that arrives can carry data out.
  const datagrams = [...hosts]
    .filter((host) => isIP(host) === 4)
    .map((host) => ({ id: `${host}:53 (UDP)`, try: "datagram", host, port: 53 }) as const);
  const lookups = names.map((host) => ({ id: `lookup of ${host}`, try: "query", host, port: 53 }) as const);
  return [
    ...connections,
    ...datagrams,
    ...lookups,
    { id: gatewayId, try: "gateway", ports: gatewayPorts },
    { id: addressId, try: "address6" },
  ];
}

function byId(chosen: readonly NetworkAttempt[], { attemptMs: limitMs }: CanaryConfig): NetworkAttempts {
  return Object.fromEntries(chosen.map(({ id, ...attempt }) => [id, { ...attempt, limitMs }]));
}

export function idOf({ host, port }: CanaryDestination): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The attempts that must fail under a boundary. A lookup isn't a connection: only an empty allowlist forbids it. */
export function attemptsAgainst(network: NetworkBoundary, canary: CanaryConfig): NetworkAttempts {
  if (network.mode === "on") return {};
  const chosen = attemptsOf(canary).filter((attempt) => {
    if (attempt.try === "gateway" || attempt.try === "address6") return true;
    if (attempt.try === "query") return network.mode === "off";
    return !isAllowed(attempt, network);
  });
  return byId(chosen, canary);
}

function isAllowed({ host, port }: CanaryDestination, network: NetworkBoundary): boolean {
  const reading = readTarget(host, port);
  return reading.ok && decideBeforeLookup(reading.target, network).allowed;
}

export function reachedIn(seen: Reached): readonly string[] {
  return Object.entries(seen)
    .filter(([, how]) => how !== null)
    .map(([id]) => id);
}

/** What was reached although the boundary doesn't allow it, and how: a list may name a range that the gateway is in. */
export function leaksIn(seen: Reached, network: NetworkBoundary): readonly string[] {
  return Object.entries(seen).flatMap(([id, how]) => {
    if (how === null) return [];
    const at = id === gatewayId ? destinationsIn(how) : [];
    return at.length > 0 && at.every((one) => isAllowed(one, network)) ? [] : [`${id} (${how})`];
  });
}

/** Where an attempt led that names no destination. */
function destinationsIn(how: string): readonly CanaryDestination[] {
  return [...how.matchAll(/([\d.]+):(\d+) connected/g)].map(([, host = "", port]) => ({
    host,
    port: Number(port),
  }));
}

/** Milliseconds for Node.js to start in a new sandbox. */
const startMs = 20_000;

/** Makes attempts from inside a sandbox, all at once, through the platform's own access. */
export async function tryFrom(
  machine: Machine,
  attempts: Attempts,
  { bridge, canary }: Pick<DaytonaConfig, "bridge" | "canary">,
): Promise<Reached> {
  return readLook(await outputOn(machine, await lookProgram(bridge.node, attempts), canary.attemptMs));
}

/**
 * What a program prints that only reads.
 *
 * @param limitMs in addition to the time that Node.js needs to start.
 */
export async function outputOn(
  machine: Machine,
  argv: readonly [string, ...string[]],
  limitMs: number,
): Promise<string> {
  const totalMs = startMs + limitMs;
  // It only reads, so it is retried after a lost response.
  const { exitCode, output } = await withRetries(() => machine.execute(shellLine(argv), totalMs), {
    retries: 3,
    limitMs: totalMs,
  });
  if (exitCode !== 0)
    throw new Error(`${argv[0]} ended with ${exitCode} in the sandbox: ${output.trim().slice(0, 200)}`);
  return output;
}
