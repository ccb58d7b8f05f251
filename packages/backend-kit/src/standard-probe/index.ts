/** A probe for backends whose sandboxes reach, or would reach, the runner's own host: trials of every capability. */
export { probeSandboxes } from "./probe.js";
export type { OpenOptions, ProbedSandbox, StandardProbe } from "./standard-probe.js";
