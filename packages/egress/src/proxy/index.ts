export type { EgressProtocol } from "../decide.js";
export type { Lookup } from "../guarded-lookup.js";
export { defaultProxyLimits, type EgressLimits, serverBudget } from "./clients.js";
export type { EgressDecision } from "./gate.js";
export { type EgressChecks, egressChecks } from "./gate.js";
export { BOUNDARY_HEADER, type OwnServer } from "./http/own-response.js";
export { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "./proxy.js";
export {
  type ClientEnvironmentOptions,
  type ClientOptions,
  clientEnvironment,
  directHosts,
  nodePreload,
  openSessionEgress,
  openSessionProxy,
  prepareClients,
  type SessionEgress,
  type SessionEgressOptions,
  type SessionProxyOptions,
  tunnelProgram,
} from "./session.js";
