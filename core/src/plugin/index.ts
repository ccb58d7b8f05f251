/** All that a plugin's author imports. */

export {
  type Boundary,
  type FilesystemBoundary,
  formatRule,
  type HostRule,
  isRestricted,
  type NetworkBoundary,
  type NetworkRule,
  parseNetworkRule,
  type RangeRule,
  type ResourceLimits,
  readHost,
} from "../boundary/index.js";
export * from "../contract/index.js";
export {
  AmbitError,
  codeOf,
  HarnessFailed,
  ModelFailed,
  messageOf,
  PluginBrokeContract,
  RunCancelled,
  RunTimedOut,
  SandboxFailed,
} from "../errors.js";
export * from "./actor.js";
export * from "./bearer.js";
export * from "./define-executor.js";
export * from "./define-plugin.js";
export * from "./delivery.js";
export * from "./executor.js";
export * from "./harness.js";
export * from "./injection.js";
export * from "./installation.js";
export * from "./log.js";
export * from "./model-gateway.js";
export * from "./observer.js";
export * from "./own-tools.js";
export * from "./plugin-abort.js";
export * from "./sandbox.js";
export * from "./scope.js";
export * from "./shortened.js";
export * from "./store/index.js";
export * from "./tool-source.js";
export * from "./unless-aborted.js";
