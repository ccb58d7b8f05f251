import type { ProxyEndpoint, UpstreamProxy } from "@ambit/core/plugin";
import ipaddr from "ipaddr.js";
import { matches } from "../decide.js";
import type { Target } from "../target.js";

/** `localhost` and its subdomains, which lead to this host (RFC 6761). */
const localName = /(^|\.)localhost$/;

/**
 * The proxy on the way to a target; undefined where the connection is direct. Pure.
 *
 * @param addresses of its name. Empty: they aren't known, and only the name counts.
 */
export function proxyFor(
  target: Target,
  addresses: readonly string[],
  upstream: UpstreamProxy | undefined,
): ProxyEndpoint | undefined {
  if (upstream === undefined || isLoopback(target, addresses)) return undefined;
  const places = [target, ...addresses.map((host): Target => ({ host, kind: "address", port: target.port }))];
  for (const { destinations, proxy } of upstream.routes) {
    const isListed =
      destinations === "all" || destinations.some((rule) => places.some((place) => matches(rule, place)));
    if (isListed) return proxy === "direct" ? undefined : proxy;
  }
  return undefined;
}

/** Whether only the proxy resolves this name: it isn't looked up here, and its addresses aren't judged. Pure. */
export function isResolvedByProxy(target: Target, upstream: UpstreamProxy | undefined): boolean {
  return (
    upstream?.resolve === "proxy" && target.kind === "name" && proxyFor(target, [], upstream) !== undefined
  );
}

function isLoopback({ host, kind }: Target, addresses: readonly string[]): boolean {
  if (kind === "name" && localName.test(host)) return true;
  const all = kind === "address" ? [host] : addresses;
  return (
    all.length > 0 && all.every((text) => ipaddr.isValid(text) && ipaddr.parse(text).range() === "loopback")
  );
}
