/** A probe for backends whose sandboxes run on, or can reach, the runner's own host: trials of every capability. */
export type { StandardBench, StandardTrial } from "./bench.js";
export { probedBy, probeSandboxes, standardTrials } from "./probe.js";
export type {
  KernelInside,
  KernelPaths,
  ProbedSandbox,
  ProbeTarget,
  SandboxOverrides,
  StandardProbe,
} from "./standard-probe.js";
export { type InboundStage, tryInbound } from "./trials/inbound.js";
export { limitTrials } from "./trials/resources.js";
