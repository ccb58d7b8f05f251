export { BOUNDARY_HEADER } from "./answers.js";
export { type EgressChecks, egressChecks } from "./checks.js";
export type { EgressDecision, EgressProtocol, Lookup } from "./gate.js";
export { defaultLimits, type EgressLimits } from "./limits.js";
export { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "./proxy.js";
