import { type Agent, Agent as HttpAgent } from "node:http";
import { type AgentOptions, Agent as HttpsAgent } from "node:https";
import { isIPv6, type LookupFunction, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UpstreamProxy } from "@ambit/core/plugin";
import { AddressRefused, guardedLookup, type Lookup, lookupOnThisHost } from "../guarded-lookup.js";
import { readTarget, type Target } from "../target.js";
import { isResolvedByProxy, openTunnel, proxyFor } from "./upstream-proxy.js";

/** Where a client may connect, and by which way. Variables of the process, such as `HTTP_PROXY`, never count. */
export interface ConnectionGuard {
  /** Why an address may not be connected to, as in "10.0.0.1 is private"; undefined if it may. Default: all may. */
  readonly whyClosed?: ((address: string, port: number) => string | undefined) | undefined;
  /** Default: this host's. */
  readonly lookup?: Lookup | undefined;
  /** Default: connections are direct. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
}

/** For clients of `node:http`. */
export interface AgentGuard extends ConnectionGuard {
  /** Gets each connection before it is used. */
  readonly onConnection?: (connection: Duplex) => void;
}

/** For a tunnel through the proxy, in milliseconds. */
const tunnelMs = 10_000;

/** How a connection is made: directly, with a lookup that checks; or over a socket to the proxy, which is open already. */
type GuardedWay = { readonly lookup: LookupFunction } | { readonly socket: Socket };

/** The way for a client without the deployer's proxy. @throws AddressRefused for a literal address, which is never looked up */
function directWay(host: string, port: number, guard: ConnectionGuard): { readonly lookup: LookupFunction } {
  requireOpen(targetOf(host, port), [], guard);
  return directWayTo(port, guard);
}

/**
 * The way to a destination: a name is resolved once, and every address is checked.
 *
 * @throws AddressRefused before anything is connected to; ProxyFailed; the lookup's error; the signal's reason
 */
async function openWay(
  host: string,
  port: number,
  guard: ConnectionGuard,
  signal?: AbortSignal,
): Promise<GuardedWay> {
  const { upstreamProxy, lookup = lookupOnThisHost } = guard;
  if (upstreamProxy === undefined) return directWay(host, port, guard);
  const target = targetOf(host, port);
  const isNamed = target.kind === "address" || isResolvedByProxy(target, upstreamProxy);
  const addresses = isNamed ? [] : await lookup(target.host);
  const proxy = proxyFor(target, addresses, upstreamProxy);
  requireOpen(target, addresses, guard);
  if (proxy === undefined) return directWayTo(port, { ...guard, lookup: async () => addresses });
  const [address = target.host] = addresses;
  if (!isNamed && addresses.length === 0) throw new AddressRefused(`${target.host}: it has no address`);
  const socket = await openTunnel(proxy, { host: address, port }, { timeoutMs: tunnelMs, signal });
  // As a connection of Node's own: one that its server has ended must not wait for another request.
  socket.allowHalfOpen = false;
  return { socket };
}

function directWayTo(port: number, { whyClosed, lookup }: ConnectionGuard) {
  return { lookup: guardedLookup((address) => whyClosed?.(address, port), lookup) };
}

function requireOpen(target: Target, addresses: readonly string[], { whyClosed }: ConnectionGuard): void {
  const checked = target.kind === "address" ? [target.host] : addresses;
  const reasons = checked.flatMap((address) => whyClosed?.(address, target.port) ?? []);
  if (reasons.length === 0) return;
  const why = [...new Set(reasons)].join("; ");
  throw new AddressRefused(target.kind === "address" ? why : `${target.host}: ${why}`);
}

/** @param host as clients have it: an IPv6 address without brackets. */
function targetOf(host: string, port: number): Target {
  const reading = readTarget(isIPv6(host) ? `[${host}]` : host, port);
  if (!reading.ok) throw new AddressRefused(reading.why);
  return reading.target;
}

/** What an agent of Node calls `createConnection` with. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
}
type Done = (error: Error | null, stream: Duplex) => void;

/**
 * Agents of `node:http` and `node:https`, whose connections are all guarded. TLS is verified, whatever
 * `NODE_TLS_REJECT_UNAUTHORIZED` says. Close them with `destroy`.
 */
export function guardedAgents(
  guard: AgentGuard,
  options: AgentOptions = {},
): { readonly http: Agent; readonly https: HttpsAgent } {
  const http = new HttpAgent(options);
  const https = new HttpsAgent({ rejectUnauthorized: true, ...options });
  const connectHttp = http.createConnection.bind(http);
  const connectHttps = https.createConnection.bind(https);
  http.createConnection = (destination, done) =>
    connectBy(
      guard,
      destination,
      (way) => ("socket" in way ? way.socket : connectHttp({ ...destination, ...way })),
      done,
    );
  https.createConnection = (destination, done) =>
    connectBy(guard, destination, (way) => connectHttps({ ...destination, ...way }), done);
  return { http, https };
}

function connectBy(
  guard: AgentGuard,
  { host, port }: Destination,
  connect: (way: GuardedWay) => Duplex | null | undefined,
  done: Done | undefined,
): Duplex | null | undefined {
  // Node's type requires a stream even if there is none.
  const fail = (error: Error) => (done as ((error: Error) => void) | undefined)?.(error);
  const name = host ?? "localhost";
  const connectWatched = (way: GuardedWay) => {
    const stream = connect(way);
    if (stream != null) guard.onConnection?.(stream);
    return stream;
  };
  if (guard.upstreamProxy === undefined) {
    // At once: an agent counts a connection only when it has it, and `maxSockets` wouldn't hold.
    try {
      return connectWatched(directWay(name, Number(port), guard));
    } catch (error) {
      process.nextTick(fail, error);
      return undefined;
    }
  }
  openWay(name, Number(port), guard)
    .then((way) => {
      const stream = connectWatched(way);
      if (stream != null) done?.(null, stream);
    })
    .catch(fail);
  return undefined;
}
