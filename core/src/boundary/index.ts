export * from "./boundary.js";
export * from "./limit-variables.js";
export { readHost } from "./network/host.js";
export { formatRule, type ParsedRule, parseNetworkRule } from "./network/rule.js";
export { listsWideRanges } from "./network/share.js";
export * from "./normalise.js";
