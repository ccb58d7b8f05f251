import "reflect-metadata";

export type { AdmittedRun } from "./admission/admission.js";
export { type CallerRules, type RunOptions, strictestCeiling } from "./admission/caller-rules.js";
export { commandIn } from "./admission/commands.js";
export { type MinimumBoundary, minimumBoundarySchema } from "./admission/minimum-boundary.js";
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
export type { RunnerOptions } from "./compose.js";
export { notifyLost, notifyPosted, notifyServing } from "./events/observers.js";
export { Redactor } from "./events/redaction/redactor.js";
export { secretsIn, secretsOf } from "./events/redaction/secrets.js";
export { coalesced } from "./events/turn-record.js";
export { pathBeyondDepth } from "./json-values.js";
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
export { type ContractSettings, contractSettingsSchema, parseRunRequest } from "./parse/parse.js";
export { historyOf, promptOf } from "./parse/prompt.js";
export { Run } from "./run/run.js";
export { fileUrl } from "./run/workspace-outputs.js";
export { Runner, type Slot } from "./runner.js";
export { RefreshFailed } from "./session/secrets/refresher.js";
export type { SessionHolding, SessionKeeper, SessionName, SessionRecord } from "./session/session-keeper.js";
