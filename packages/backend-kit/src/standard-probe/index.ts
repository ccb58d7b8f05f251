/** A probe for backends whose sandboxes reach, or would reach, the runner's own host: trials of every capability. */
export type { OpenOptions, ProbedSandbox } from "./bench.js";
export { probeSandboxes, type StandardProbe } from "./probe.js";
