export * from "./boundary.js";
export { formatRule, listsWideRanges, type ParsedRule, parseNetworkRule, readHost } from "./network-rules.js";
export * from "./normalise.js";
