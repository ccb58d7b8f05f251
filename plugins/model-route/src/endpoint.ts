import type { Issue, ModelUse } from "@ambit/core/plugin";
import {
  addressesOfThisHost,
  literalAddress,
  portOf,
  privateRanges,
  rangeOf,
  whyClosed,
} from "@ambit/egress";
import type { ModelRouteConfig } from "./config.js";
import { isReserved } from "./request/headers.js";

type Addresses = Pick<ModelRouteConfig, "allowedRanges" | "privateHosts">;

/** Why this endpoint may not use this address; undefined if it may. */
export function whyAddressClosed(
  url: URL,
  address: string,
  { allowedRanges, privateHosts }: Addresses,
): string | undefined {
  const isNamed = literalAddress(url) !== undefined || /(^|\.)localhost\.?$/.test(url.hostname);
  const operators = allowedRanges.map(rangeOf);
  if (privateHosts === "refuse")
    return whyClosed(address, operators, { port: portOf(url), own: addressesOfThisHost() });
  return whyClosed(address, isNamed ? [...privateRanges, ...operators] : operators, { port: portOf(url) });
}

/** Why the endpoint can't be used at all. */
export function endpointIssues(use: ModelUse, config: Addresses): readonly Issue[] {
  const at = (message: string): Issue[] => [{ path: "modelConnection.endpoint.baseUrl", message }];
  if (!URL.canParse(use.endpoint)) return at("isn't a URL");
  const url = new URL(use.endpoint);
  if (url.protocol !== "https:" && url.protocol !== "http:") return at("must begin with https:// or http://");
  if (url.username !== "" || url.password !== "")
    return at("must not contain a name or password: use credentials");
  if (url.search !== "" || url.hash !== "")
    return at("must end with its path: the model route adds the query");
  const address = literalAddress(url);
  const closed = address === undefined ? undefined : whyAddressClosed(url, address, config);
  if (closed !== undefined) {
    return at(`can't be connected to: ${closed}; list it in allowedRanges of the plugin model-route`);
  }
  return Object.keys(use.headers).flatMap((name) =>
    isReserved(name)
      ? [
          {
            path: `modelConnection.endpoint.headers.${name}`,
            message: "is set by the runner: leave it out",
          },
        ]
      : [],
  );
}

/** The real URL of a call. `path` is canonical, and so begins with the base URL's own path. */
export function upstreamUrl({ endpoint, basePath }: ModelUse, path: string, query: string): URL {
  const base = new URL(endpoint);
  const operationPath = path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path;
  return new URL(`${base.origin}${base.pathname.replace(/\/+$/, "")}${operationPath}${query}`);
}

/** With its port. Pure. */
export function hostOf({ endpoint }: Pick<ModelUse, "endpoint">): string {
  const { hostname, port, protocol } = new URL(endpoint);
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}
