export type { Admitted } from "./admission.js";
export { type RunLimits, runLimitsSchema } from "./limits.js";
export { type PermissionCeiling, permissionOf } from "./permission.js";
export { Redactor, secretsOf } from "./redact.js";
export { Run, type RunOptions } from "./run.js";
export { Runner, type RunnerOptions, type Slot } from "./runner.js";
