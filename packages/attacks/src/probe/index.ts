/** What a probe is made of: trials with their controls, and the findings that follow from them. */
export * from "./bench.js";
export * from "./egress-rules.js";
export * from "./findings.js";
export * from "./free-ports.js";
export * from "./trial.js";
