export type { Lookup } from "../guarded-lookup.js";
export type { EgressProtocol } from "./admitted.js";
export { type EgressChecks, egressChecks } from "./checks.js";
export type { EgressDecision } from "./gate.js";
export type { OwnServer } from "./http/own-address.js";
export { BOUNDARY_HEADER } from "./http/own-response.js";
export { defaultProxyLimits, type EgressLimits } from "./limits.js";
export { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "./proxy.js";
export {
  type ClientEnvironmentOptions,
  clientEnvironment,
  directHosts,
  nodePreload,
  tunnelProgram,
} from "./session/client-environment.js";
export {
  type ClientOptions,
  openSessionEgress,
  prepareClients,
  type SessionEgress,
  type SessionEgressOptions,
} from "./session/session-egress.js";
export { openSessionProxy, type SessionProxyOptions } from "./session/session-proxy.js";
export { serverBudget } from "./shared-budget.js";
