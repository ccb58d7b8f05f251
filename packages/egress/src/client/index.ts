/** The one HTTP client for what the runner itself connects to: a checked address, no redirects, no ambient proxy. */
export { type AgentGuard, type ConnectionGuard, guardedAgents } from "./agents.js";
export * from "./http-client.js";
export { ProxyFailed, type ProxyTrial, tryProxies } from "./upstream-proxy.js";
