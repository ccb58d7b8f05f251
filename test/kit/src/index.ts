/** `@ambit/testkit`: what a plugin's tests call. */
export * from "./attacks.js";
export type { ExecutorCase, ExecutorWorld, Reply } from "./executor/executor-case.js";
export { describeSandboxBackend, type SandboxSuiteOptions } from "./vitest/describe-sandbox-backend.js";
export { describeToolDelivery } from "./vitest/describe-tool-delivery.js";
export { describeToolExecutor } from "./vitest/describe-tool-executor.js";
