import "reflect-metadata";

export type { AdmittedRun } from "./admission/admission.js";
export { type CallerRules, strictestCeiling } from "./admission/caller-rules.js";
export { commandIn } from "./admission/commands.js";
export { type MinimumBoundary, minimumBoundarySchema } from "./admission/minimum-boundary.js";
export type { RunOptions } from "./admission/run-options.js";
export { isPattern } from "./call/permission/pattern.js";
export type {
  AnswerLedger,
  KnownOutcome,
  LedgerContent,
  LedgerEntry,
  QuestionName,
  Settlement,
} from "./call/values/answer.js";
export { maxOutcomeCharacters, readAnswer } from "./call/values/answer.js";
export { coalesced } from "./events/coalesced.js";
export { notifyLost, notifyPosted, notifyServing } from "./events/observers.js";
export { Redactor } from "./events/redaction/redactor.js";
export { secretsIn, secretsOf } from "./events/redaction/secrets.js";
export { FairMap } from "./lifetime/memory/fair-map.js";
export { type RunLimits, runLimitsSchema } from "./limits.js";
export type {
  CredentialRefreshService,
  PermissionCeiling,
  PortOfSession,
  Preview,
  PreviewService,
  SnapshotService,
  WorkspaceService,
} from "./operator.js";
export { noPreviews } from "./operator.js";
export { type CallersTrace, callersTraceSchema } from "./parse/callers-trace.js";
export { pathBeyondDepth } from "./parse/depth.js";
export { type ContractSettings, contractSettingsSchema, parseRunRequest } from "./parse/parse.js";
export { historyOf, promptOf } from "./parse/prompt.js";
export { Run } from "./run/run.js";
export { fileUrl } from "./run/workspace-outputs.js";
export { Runner, type Slot } from "./runner.js";
export type { RunnerOptions } from "./runner-options.js";
export { RefreshFailed } from "./session/secrets/ask-for-value.js";
export type { SessionHolding, SessionKeeper, SessionRecord } from "./session/session-keeper.js";
export type { SessionName } from "./session/session-name.js";
