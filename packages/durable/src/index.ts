export { type Records, type RunLog, recordsIn } from "./log/follow.js";
export { type LeasedHold, type RecordedRun, Recorder, recoveryOf } from "./log/recorder.js";
export { OtherKey, RecordedRuns, type RecordedRunsOptions, type StartedRun } from "./recorded-runs.js";
export { endedBy } from "./replica/left-overs.js";
export { Sealing } from "./sealing.js";
export {
  type MemorySettings,
  memorySettingsSchema,
  type StoreSettings,
  storeSettingsSchema,
} from "./settings.js";
export type { WebhookPost, WebhookResponse, WebhookSender } from "./webhooks/deliveries.js";
export { type WebhookMessage, webhookMessageSchema } from "./webhooks/messages.js";
export * from "./wire/stored.js";
