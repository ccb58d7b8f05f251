export * from "./boundary.js";
export { listsHalfOfAddresses } from "./network/half.js";
export { readHost } from "./network/host.js";
export { formatRule, type ParsedRule, parseNetworkRule } from "./network/rule.js";
export * from "./normalise.js";
