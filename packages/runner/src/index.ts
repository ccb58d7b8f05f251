import "reflect-metadata";

export type { Admitted } from "./admission.js";
export { type CallerRules, strictestCeiling } from "./caller-rules.js";
export { coalesced } from "./events/coalesced.js";
export { Redactor } from "./events/redaction/redactor.js";
export { secretsOf } from "./events/redaction/secrets.js";
export { type RunLimits, runLimitsSchema } from "./limits.js";
export { olderNamesOf } from "./parse/compat/older-values.js";
export { pathBeyondDepth } from "./parse/depth.js";
export { type ContractSettings, contractSettingsSchema, parseRunRequest } from "./parse/parse.js";
export { historyOf, promptOf } from "./parse/prompt.js";
export { readAnswer } from "./permission/interaction/interactions.js";
export type { AnswerKeeper, GivenAnswer } from "./permission/interaction/used-answers.js";
export { isPattern } from "./permission/pattern.js";
export type { PermissionCeiling } from "./permission/permission.js";
export { Run } from "./run.js";
export type { RunOptions } from "./run-options.js";
export { Runner, type RunnerOptions, type Slot } from "./runner.js";
