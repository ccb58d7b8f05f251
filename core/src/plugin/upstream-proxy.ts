import type { NetworkRule } from "../boundary.js";

/** An HTTP proxy that opens tunnels by CONNECT. */
export interface ProxyEndpoint {
  /** `http://proxy.example:3128`, or `https:` where the connection to the proxy itself is encrypted. No user, no path. */
  readonly url: string;
  /** The value of `Proxy-Authorization`. Default: none is sent. */
  readonly authorization?: string | undefined;
}

/**
 * How connections leave this host where the deployer has a proxy. Plain data, since a gate in another process gets it too. It
 * holds credentials: never log it.
 */
export interface UpstreamProxy {
  /** The first route whose destinations include the target counts. Loopback is always reached directly. */
  readonly routes: readonly {
    readonly destinations: readonly NetworkRule[] | "all";
    readonly proxy: ProxyEndpoint | "direct";
  }[];
  /**
   * Who resolves the names of what goes through a proxy. `here`: this host does, judges the addresses, and names an address
   * to the proxy. `proxy`: only the proxy does, and only names are judged.
   */
  readonly resolve: "here" | "proxy";
}
