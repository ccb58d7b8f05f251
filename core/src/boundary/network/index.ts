export {
  allowsDestination,
  decideBeforeLookup,
  decideConnection,
  matches,
  type NetworkDecision,
  whyClosed,
} from "./decide.js";
export { formatRule, type ParsedRule, parseNetworkRule } from "./rule.js";
export {
  formatTarget,
  readAuthority,
  readHost,
  readTarget,
  type Target,
  type TargetReading,
} from "./target.js";
