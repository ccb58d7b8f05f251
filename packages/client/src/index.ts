export type {
  AgentEvent,
  EventRecord,
  FailedResult,
  InteractionAnswer,
  InteractionKind,
  InteractionRequest,
  RunRequest,
  RunResult,
  Schema,
  StreamRecord,
} from "./api.js";
export { AmbitClient, type ClientOptions } from "./client.js";
export { ControlStringFilter } from "./control-strings.js";
export { AmbitError, type AmbitErrorCode, type Gap, type Issue } from "./errors.js";
export type { Run, RunOptions } from "./run.js";
export { maxTerminalSide, type Terminal, type TerminalEnd, type TerminalSize } from "./terminal.js";
export { verifyWebhook, type WebhookMessage } from "./webhooks.js";
