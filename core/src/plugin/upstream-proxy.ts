import type { NetworkRule } from "../boundary.js";

/** An HTTP proxy that opens tunnels by CONNECT. */
export interface ProxyEndpoint {
  /** `http://proxy.example:3128`, or `https:` if the connection to the proxy is encrypted. It has no user and no path. */
  readonly url: string;
  /** The value of `Proxy-Authorization`. Default: none is sent. */
  readonly authorization?: string | undefined;
}

/**
 * How connections leave this host if the deployer has a proxy. It is plain data, since a gate in another process gets it
 * too. It holds credentials: never log it.
 */
export interface UpstreamProxy {
  /** The first route whose destinations include the target applies. Loopback is always reached directly. */
  readonly routes: readonly {
    readonly destinations: readonly NetworkRule[] | "all";
    readonly proxy: ProxyEndpoint | "direct";
  }[];
  /**
   * Where the names of targets behind a proxy are resolved. `here`: this host resolves them, judges the addresses, and sends
   * the proxy an address. `proxy`: only the proxy resolves them, and this host judges only names.
   */
  readonly resolve: "here" | "proxy";
}
