import "reflect-metadata";

export type { AdmittedRun } from "./admission/admission.js";
export {
  type CallerRules,
  type MinimumBoundary,
  minimumBoundarySchema,
  type RunOptions,
  strictestCeiling,
} from "./admission/caller-rules.js";
export { commandIn } from "./admission/commands.js";
export {
  type AnswerLedger,
  type KnownOutcome,
  type LedgerContent,
  type LedgerEntry,
  maxOutcomeCharacters,
  type QuestionName,
  readAnswer,
  type Settlement,
} from "./call/answer.js";
export { isPattern } from "./call/pattern.js";
export { notifyLost, notifyPosted, notifyServing } from "./events/observation.js";
export { Redactor, secretsIn, secretsOf } from "./events/redaction.js";
export { coalesced } from "./events/run-events.js";
export { pathBeyondDepth } from "./json-values.js";
export { FairMap } from "./lifetime/fair-shares.js";
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
export { historyOf, promptOf } from "./parse/messages.js";
export { type ContractSettings, contractSettingsSchema, parseRunRequest } from "./parse/parse.js";
export { Run } from "./run/run.js";
export { fileUrl } from "./run/workspace.js";
export { Runner, type RunnerOptions, type Slot } from "./runner.js";
export type { SessionHolding, SessionKeeper, SessionName, SessionRecord } from "./session/session.js";
export { RefreshFailed } from "./session/session-secrets.js";
