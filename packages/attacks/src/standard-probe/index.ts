/** A probe for backends whose sandboxes run on, or can reach, the runner's own host: trials of every capability. */
export { probeSandboxes } from "./probe.js";
export type { KernelPaths, OpenOptions, ProbedSandbox, StandardProbe, Target } from "./standard-probe.js";
