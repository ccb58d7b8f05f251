/** The one HTTP client for what the runner itself connects to: a checked address, no redirects, no ambient proxy. */
export * from "./agents.js";
export type { ConnectionGuard } from "./connect.js";
export * from "./http-client.js";
export * from "./try-proxies.js";
export { ProxyFailed } from "./tunnel.js";
