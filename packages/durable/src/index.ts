export { endedBy } from "./lease.js";
export { OtherKey, RecordedRuns, type RecordedRunsOptions, type StartedRun } from "./recorded-runs.js";
export { type LeasedHold, type RecordedRun, Recorder, recoveryOf } from "./recorder.js";
export { type Records, recordsIn } from "./run-log.js";
export { Sealing } from "./sealing.js";
export {
  type MemorySettings,
  memorySettingsSchema,
  type StoreSettings,
  storeSettingsSchema,
} from "./settings.js";
export {
  type WebhookMessage,
  type WebhookPost,
  type WebhookResponse,
  type WebhookSender,
  webhookMessageSchema,
} from "./webhooks.js";
export * from "./wire.js";
