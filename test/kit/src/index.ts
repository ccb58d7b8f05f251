/** `@ambit/testkit`: what a plugin's tests call. */
export * from "./attacks.js";
export { describeSandboxBackend, type SandboxSuiteOptions } from "./vitest/describe-sandbox-backend.js";
