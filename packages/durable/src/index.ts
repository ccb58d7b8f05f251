export { type DurableOptions, DurableRuns, type Started } from "./durable-runs.js";
export type { Records } from "./follow.js";
export { endedBy } from "./lost-result.js";
export type { RecordedRun } from "./recorded-run.js";
export { Recorder } from "./recorder.js";
export { Sealing } from "./sealing.js";
export { type StoreSettings, storeSettingsSchema } from "./settings.js";
export type { WebhookAnswer, WebhookPost, WebhookSender } from "./webhooks/deliveries.js";
