export { readHost } from "./host.js";
export { formatRule, type ParsedRule, parseNetworkRule } from "./rule.js";
