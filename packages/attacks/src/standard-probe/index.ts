/** A probe for backends whose sandboxes run on, or can reach, the runner's own host: trials of every capability. */
export type { Bench, Trial as StandardTrial } from "./bench.js";
export { probedBy, probeSandboxes, standardTrials } from "./probe.js";
export type {
  KernelInside,
  KernelPaths,
  OpenOptions,
  ProbedSandbox,
  StandardProbe,
  Target,
} from "./standard-probe.js";
export { limitTrials } from "./trials/resources.js";
