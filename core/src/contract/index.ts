/** The wire: what a platform sends to Ambit and gets back. */
export * from "./capability.js";
export * from "./dialect-fields.js";
export { maxIssues, pathText, readableIssues, type Validated } from "./issues.js";
export * from "./request/boundary/credentials.js";
export {
  filesystemModes,
  networkModes,
  type Port,
  type SandboxPermission,
  sandboxPermissionSchema,
} from "./request/boundary/sandbox-permission.js";
export { type EnvironmentRequest, hasSetup } from "./request/environment.js";
export { type GitSource, gitRefSchema, type Person } from "./request/git.js";
export * from "./request/limits.js";
export * from "./request/message.js";
export * from "./request/model.js";
export {
  type Forge,
  type OutputsRequest,
  outputsSchema,
  type PullRequestWish,
} from "./request/outputs.js";
export {
  type ForkRequest,
  type InteractionAnswer,
  idOfRun,
  interactionAnswerSchema,
  interactionSettingsSchema,
  onDisconnectOf,
  projectOf,
  type RunRequest,
  runIdSchema,
  runKey,
  runRequestSchema,
  type Webhook,
  waitsForSession,
  webhookEventSchema,
} from "./request/request.js";
export * from "./request/skill.js";
export * from "./request/tools/mcp-server.js";
export * from "./request/tools/permissions.js";
export * from "./request/tools/tool.js";
export {
  type ArchiveSource,
  type DownloadCredential,
  type Source,
  sourceSchema,
} from "./request/workspace.js";
export * from "./result/actor-description.js";
export * from "./result/events.js";
export * from "./result/failure.js";
export * from "./result/outputs.js";
export * from "./result/receipt.js";
export * from "./result/result.js";
export * from "./result/snapshot.js";
export {
  type KnownShape,
  knownShapeAt,
  knownShapeOf,
  type MarkedValue,
  markedValues,
  mergeKnownShapes,
  type SchemaField,
  schemaFields,
} from "./schema-fields.js";
export * from "./spelling.js";
export * from "./values/json.js";
export { snapshotIdSchema } from "./values/names.js";
export { type SecretKind, secret, suggestsSecret } from "./values/secret.js";
export * from "./values/workspace-path.js";
