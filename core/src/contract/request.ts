import { z } from "zod";
import { credentialSchema } from "./credentials.js";
import { onDisconnectSchema } from "./disconnect.js";
import { headersSchema, httpUrlSchema } from "./http.js";
import { interactionSettingsSchema } from "./interactions.js";
import { jsonObjectSchema } from "./json.js";
import { limits } from "./limits.js";
import { mcpServerSchema } from "./mcp-server.js";
import { messageSchema } from "./message.js";
import { modelConnectionSchema } from "./model-connection.js";
import { runIdSchema } from "./run-id.js";
import { sandboxPermissionSchema } from "./sandbox-permission.js";
import { permissionSchema, toolCallbackSchema, toolSpecSchema } from "./tool.js";
import { workspaceFileSchema } from "./workspace-path.js";

export const skillSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "must be lower-case letters, digits and hyphens"),
  description: z.string().default(""),
  body: z.string(),
  files: z
    .array(
      z.strictObject({
        path: workspaceFileSchema,
        content: z.string(),
        executable: z.boolean().optional(),
      }),
    )
    .optional(),
  disableModelInvocation: z.boolean().optional(),
  allowExecutableFiles: z.boolean().optional(),
});
export type Skill = z.infer<typeof skillSchema>;

export const harnessFileSchema = z.strictObject({ path: workspaceFileSchema, content: z.string() });

const permissionModeSchema = z.enum(["allow", "ask", "deny", "allow_reads"]);
export type PermissionMode = z.infer<typeof permissionModeSchema>;

const permissionsSchema = z.strictObject({
  default: permissionModeSchema.default("allow_reads"),
  /** `Name`, or `Name(prefix:*)` on the call's arguments. The strictest match wins. */
  rules: z
    .array(z.strictObject({ pattern: z.string().min(1), permission: permissionSchema }))
    .max(limits.permissionRules)
    .optional(),
});
export type Permissions = z.infer<typeof permissionsSchema>;

const telemetrySchema = z.strictObject({
  capture: z
    .strictObject({ content: z.strictObject({ enabled: z.boolean().optional() }).optional() })
    .optional(),
  exporters: z
    .strictObject({
      otlp: z
        .strictObject({ endpoint: httpUrlSchema.optional(), headers: headersSchema.optional() })
        .optional(),
    })
    .optional(),
});

/** One turn of one agent. Every key is optional; an unknown key is refused by its path. */
export const runRequestSchema = z.strictObject({
  runId: runIdSchema.optional(),
  harness: z.string().min(1).optional(),
  sandbox: z.string().min(1).optional(),
  sessionId: z.string().max(256).optional(),
  agentsMd: z.string().optional(),
  systemPrompt: z.string().optional(),
  appendSystemPrompt: z.string().optional(),
  model: z.string().optional(),
  messages: z.array(messageSchema).max(limits.messages).default([]),
  customTools: z.array(toolSpecSchema).max(limits.tools).default([]),
  toolCallback: toolCallbackSchema.optional(),
  mcpServers: z.array(mcpServerSchema).max(limits.mcpServers).default([]),
  skills: z.array(skillSchema).max(limits.skills).default([]),
  harnessFiles: z.array(harnessFileSchema).max(limits.harnessFiles).default([]),
  modelConnection: modelConnectionSchema.optional(),
  credentials: z.array(credentialSchema).max(limits.credentials).default([]),
  permissions: permissionsSchema.default({ default: "allow_reads" }),
  sandboxPermission: sandboxPermissionSchema.default({ enforcement: "strict" }),
  context: z
    .strictObject({
      propagation: z
        .strictObject({ traceparent: z.string().optional(), baggage: z.string().optional() })
        .optional(),
    })
    .optional(),
  telemetry: telemetrySchema.optional(),
  harnessMode: z.string().optional(),
  interactions: interactionSettingsSchema.optional(),
  onDisconnect: onDisconnectSchema.optional(),
  modelCapabilities: z.strictObject({ inputModalities: z.array(z.string()).optional() }).optional(),
  /** The platform's own name for the connection that `modelConnection` was resolved from. */
  connection: z.strictObject({ mode: z.string().optional(), slug: z.string().optional() }).optional(),
  tools: z.array(z.string()).optional(),
  runContext: jsonObjectSchema.optional(),
  turnId: z.string().optional(),
  projectId: z.string().optional(),
  streamId: z.string().optional(),
  effectiveParameters: z.unknown().optional(),
});
export type RunRequest = z.infer<typeof runRequestSchema>;
