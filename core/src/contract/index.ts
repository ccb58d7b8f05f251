/** The wire: what a platform sends to Ambit and gets back. */
export * from "./capability.js";
export * from "./request/budget.js";
export * from "./request/credentials.js";
export { onDisconnectOf } from "./request/disconnect.js";
export * from "./request/interactions.js";
export * from "./request/limits.js";
export * from "./request/mcp-server.js";
export * from "./request/message.js";
export * from "./request/model-connection.js";
export {
  type Permission,
  type PermissionMode,
  type Permissions,
  permissionSchema,
} from "./request/permissions.js";
export * from "./request/project.js";
export * from "./request/request.js";
export { runIdSchema } from "./request/run-id.js";
export * from "./request/sandbox-permission.js";
export * from "./request/skill.js";
export * from "./request/tool.js";
export { type Webhook, type WebhookEvent, webhookEventSchema } from "./request/webhook.js";
export * from "./result/actor-description.js";
export * from "./result/events.js";
export * from "./result/failure.js";
export * from "./result/receipt.js";
export * from "./result/result.js";
export * from "./result/warning.js";
export * from "./spelling.js";
export * from "./values/json.js";
export * from "./values/workspace-path.js";
