/** `@ambit/testkit/vitest`: the conformance suites that a plugin's tests call. Needs vitest. */
export type { BlobsFault, BlobsRig } from "../blobs/blobs-rig.js";
export type { ExecutorAttack } from "../executor/executor-attack.js";
export type { ExecutorCase, ExecutorWorld, Reply } from "../executor/executor-case.js";
export type { OwnToolCall, OwnToolsCase } from "../permissions/own-tools-case.js";
export type { StoreRig } from "../store/store-rig.js";
export { describeBlobs } from "./blobs/describe-blobs.js";
export { describeHarness } from "./describe-harness.js";
export { describeHarnessPermissions } from "./describe-harness-permissions.js";
export { describeModelGateway } from "./describe-model-gateway.js";
export { describeSandboxBackend, type SandboxSuiteOptions } from "./describe-sandbox-backend.js";
export { describeStore } from "./describe-store.js";
export { describeToolDelivery } from "./describe-tool-delivery.js";
export { describeToolExecutor, type ExecutorSuiteOptions } from "./describe-tool-executor.js";
export { describeToolSource } from "./describe-tool-source.js";
export { requireProven } from "./require-proven.js";
