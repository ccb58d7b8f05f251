import type { UpstreamProxy } from "@ambit/core/plugin";
import { portOf } from "../destination.js";
import { openTunnel, ProxyFailed } from "./tunnel.js";

export interface ProxyTrial {
  /** `host:port`. */
  readonly proxy: string;
  /** Whether it speaks HTTP and takes the credentials. Which destinations it lets through isn't known. */
  readonly works: boolean;
  /** Reads on after the proxy's name. */
  readonly observation: string;
}

const trialMs = 10_000;

/** Asks each proxy for a tunnel to itself: no other host is contacted. */
export async function tryProxies({ routes, resolve }: UpstreamProxy): Promise<readonly ProxyTrial[]> {
  const endpoints = routes.flatMap(({ proxy }) => (proxy === "direct" ? [] : [proxy]));
  const names = resolve === "proxy" ? "; it resolves names, and Ambit doesn't judge their addresses" : "";
  return await Promise.all(
    [...new Map(endpoints.map((endpoint) => [endpoint.url, endpoint])).values()].map(async (endpoint) => {
      const url = new URL(endpoint.url);
      const itself = { host: url.hostname.replace(/^\[|\]$/g, ""), port: portOf(url) };
      const found = (works: boolean, observation: string) => ({
        proxy: url.host,
        works,
        observation: `${observation}${works ? names : ""}`,
      });
      try {
        (await openTunnel(endpoint, itself, { timeoutMs: trialMs })).destroy();
        return found(true, "answered CONNECT with a tunnel");
      } catch (error) {
        if (!(error instanceof ProxyFailed)) throw error;
        const { status } = error;
        if (status === undefined) return found(false, error.message.replace(/^the proxy \S+ /, ""));
        if (status === 407) return found(false, "answered 407: it wants other credentials");
        return found(true, `answered CONNECT (${status} for a tunnel to itself)`);
      }
    }),
  );
}
