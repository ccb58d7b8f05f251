/** Everything that a plugin's author imports. */

export * from "../boundary.js";
export * from "../contract/index.js";
export {
  AmbitError,
  codeOf,
  HarnessFailed,
  ModelFailed,
  messageOf,
  NotFound,
  PluginBrokeContract,
  RequestInvalid,
  RunCancelled,
  RunTimedOut,
  SandboxFailed,
  StoreFailed,
} from "../errors.js";
export * from "./actor.js";
export * from "./bearer.js";
export * from "./define-plugin.js";
export * from "./eviction.js";
export * from "./folders.js";
export * from "./kinds/delivery.js";
export * from "./kinds/dialect.js";
export * from "./kinds/door.js";
export * from "./kinds/executor.js";
export * from "./kinds/harness.js";
export * from "./kinds/model-gateway.js";
export * from "./kinds/observer.js";
export * from "./kinds/sandbox.js";
export * from "./kinds/store.js";
export * from "./kinds/tool-policy.js";
export * from "./question-state.js";
export * from "./scope.js";
export * from "./text-pieces.js";
export * from "./upstream-proxy.js";
export * from "./valid-body.js";
