import type {
  ActorGap,
  Boundary,
  Capability,
  NetworkBoundary,
  NetworkRule,
  RangeRule,
} from "@ambit/core/plugin";
import { inside } from "./confined/arguments.js";

/** A service on the host's loopback that the boundary lists. Inside, a relay answers at the same address and port. */
export interface LoopbackForward {
  readonly address: string;
  readonly port: number;
}

/** Each takes a listener in every jail. */
const maxForwards = 16;
/** A jail's user can't listen on lower ports. */
const firstFreePort = 1_024;

/** The forwards of the relay to the host's loopback: single addresses with a port, without duplicates. Pure. */
export function loopbackForwards({ rules }: NetworkBoundary): readonly LoopbackForward[] {
  const forwards = rules.flatMap((rule) => {
    const address = loopbackAddress(rule);
    const { port } = rule;
    return address === undefined || port === undefined || !isForwardable(port) ? [] : [{ address, port }];
  });
  return [...new Map(forwards.map((forward) => [`${forward.address} ${forward.port}`, forward])).values()];
}

/**
 * Hosts that a jail's programs reach without the proxy: its own loopback, with the forwards on it. If an address of the
 * host's loopback is listed that can't be forwarded (with all of its ports, or one below 1024), programs use the proxy
 * for `127.…`, and only `localhost` stays the jail's own. Pure.
 */
export function directHosts({ rules }: NetworkBoundary): readonly string[] {
  const asksProxy = rules.some((rule) => isLoopbackRange(rule) && rule.family === 4 && !isForwarded(rule));
  const addresses = asksProxy ? [] : ["127.0.0.1", "127.0.1.1", "127.0.0.0/8"];
  return ["localhost", inside.hostName, ...addresses, "::1"];
}

/** Loopback entries of an allowlist that a jail can't enforce. Pure. */
function loopbackGaps(network: NetworkBoundary): readonly ActorGap[] {
  const gaps: ActorGap[] = [];
  const own = `${inside.channelAddress}:${inside.port}`;
  if (
    network.rules.some((rule) => rule.port === inside.port && loopbackAddress(rule) === inside.channelAddress)
  ) {
    gaps.push({
      capability: "network.allow-cidr",
      reason: `${own} is the address of the sandbox's own channel`,
      fix: "run the service on another port of the host, and list that one",
    });
  }
  const count = loopbackForwards(network).length;
  if (count > maxForwards) {
    gaps.push({
      capability: "network.allow-cidr",
      reason: `${count} ports of this host's loopback are listed, and at most ${maxForwards} can be forwarded`,
      fix: `list ${maxForwards} at most, or put the services behind one gateway`,
    });
  }
  const localhost = network.rules.find((rule) => rule.kind === "host" && rule.name === "localhost");
  if (localhost !== undefined && !network.rules.some(isLoopbackRange)) {
    gaps.push({
      capability: "network.allow-host",
      reason: "localhost is a loopback address, and no listed range contains it",
      fix: `list "127.0.0.1:${localhost.port ?? "<port>"}" instead`,
    });
  }
  return gaps;
}

/** Why the runner's connections can't reach exactly the boundary's ports inside. Pure. */
function inboundGaps({ network, inbound }: Boundary): readonly ActorGap[] {
  if (inbound === undefined) return [];
  const gap = (reason: string, fix: string) => [{ capability: "inbound.ports", reason, fix }] as const;
  if (network.mode === "on") {
    return gap(
      "the network is the host's own, and so are its ports",
      'set sandboxPermission.network to "off" or to an allowlist',
    );
  }
  // What listens there leads out of the jail: to the session's channel, or to a service of this host.
  if (inbound.includes(inside.port))
    return gap(`${inside.port} is the port of the sandbox's own channel`, "use another port");
  const forwarded = loopbackForwards(network).find(({ port }) => inbound.includes(port));
  if (forwarded === undefined) return [];
  return gap(
    `${forwarded.port} leads to this host's loopback, which sandboxPermission.network lists`,
    "use another port inside",
  );
}

function isForwarded(rule: NetworkRule): boolean {
  return loopbackAddress(rule) !== undefined && rule.port !== undefined && isForwardable(rule.port);
}

function isForwardable(port: number): boolean {
  return port >= firstFreePort && port !== inside.port;
}

function isLoopbackRange(rule: NetworkRule): rule is RangeRule {
  return rule.kind === "range" && (rule.cidr.startsWith("127.") || rule.cidr === "::1/128");
}

/** The single loopback address that a rule names. */
function loopbackAddress(rule: NetworkRule): string | undefined {
  if (!isLoopbackRange(rule)) return undefined;
  const [address, prefix] = rule.cidr.split("/");
  return prefix === (rule.family === 4 ? "32" : "128") ? address : undefined;
}

/** What confined sandboxes of this host enforce, as far as the probe proves it. Unconfined ones enforce nothing. */
export const claims = [
  "network.deny",
  "network.allow-cidr",
  "network.allow-host",
  "filesystem.read-only",
  "filesystem.workspace-only",
  "filesystem.none",
  "filesystem.host-hidden",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "resources.memory",
  "resources.processes",
  "resources.cpu",
  "resources.disk",
  "secrets.hidden",
  "inbound.ports",
] as const satisfies readonly Capability[];

export type Claim = (typeof claims)[number];

/** The parts of a boundary that this backend can't enforce on any host. Pure. */
export function limitsOf(boundary: Boundary): readonly ActorGap[] {
  const { network, filesystem, secrets } = boundary;
  const gaps: ActorGap[] = [...loopbackGaps(network), ...inboundGaps(boundary)];
  if (filesystem.mode === "readonly" && filesystem.writable.length > 0) {
    gaps.push({
      capability: "filesystem.read-only",
      reason: "a path is listed as writable",
      fix: 'use the mode "workspace" with this list: the rest is read-only then',
    });
  }
  if (filesystem.mode === "off" && filesystem.writable.length + filesystem.readable.length > 0) {
    gaps.push({
      capability: "filesystem.none",
      reason: "paths of the workspace are listed",
      fix: 'use the mode "workspace" or "readonly" with these lists',
    });
  }
  if (secrets === "hidden" && network.mode === "on") {
    gaps.push({
      capability: "secrets.hidden",
      reason: "the network is the host's own, and nothing there replaces a placeholder",
      fix: 'set sandboxPermission.network to "off" or to an allowlist',
    });
  }
  return gaps;
}
