export { BOUNDARY_HEADER } from "./answers.js";
export { type Decision, decide, decideBeforeLookup } from "./decide.js";
export type { EgressDecision, EgressProtocol, Lookup } from "./gate.js";
export { defaultLimits, type EgressLimits } from "./limits.js";
export {
  type HostRule,
  type Parsed,
  type Policy,
  parseHostRule,
  parseRange,
  type RangeRule,
  type RuleProblem,
} from "./policy.js";
export { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "./proxy.js";
export { formatTarget, readAuthority, readHost, readTarget, type Target } from "./target.js";
