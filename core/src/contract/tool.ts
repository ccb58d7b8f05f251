import { z } from "zod";
import { environmentValueSchema } from "./environment.js";
import { headerValueSchema, httpUrlSchema } from "./http.js";
import { jsonObjectSchema } from "./json.js";

export const permissionSchema = z.enum(["allow", "ask", "deny"]);
export type Permission = z.infer<typeof permissionSchema>;

/** How a user interface may show a call: copied onto its `tool_call` and `tool_result`, never interpreted. */
export const renderHintSchema = z.looseObject({
  /** `component`, `source`, `spec`, `connect`, `elicitation`, or what a newer user interface knows. */
  kind: z.string().min(1),
});
export type RenderHint = z.infer<typeof renderHintSchema>;

/** A call that goes straight to a path of the platform instead of its tool endpoint. Excludes `callRef`. */
export const directCallSchema = z.strictObject({
  method: z.enum(["GET", "POST", "PUT", "DELETE"]),
  path: z.string().min(1),
  body: jsonObjectSchema.optional(),
  context: jsonObjectSchema.optional(),
  args_into: z.string().optional(),
});
export type DirectCall = z.infer<typeof directCallSchema>;

/**
 * A tool, on three axes that don't depend on each other: who executes it (`kind`), whether it may run
 * (`permission`, `readOnly`), how it looks (`render`). Which other fields a kind needs, its executor says.
 */
export const toolSpecSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . -"),
  description: z.string().optional(),
  /** JSON Schema of the arguments; handed to the agent unchanged. */
  inputSchema: jsonObjectSchema.default({ type: "object", properties: {} }),
  /** `callback`, `code`, `client`, or a kind that a loaded plugin executes. */
  kind: z.string().min(1).default("callback"),
  permission: permissionSchema.optional(),
  readOnly: z.boolean().optional(),
  render: renderHintSchema.optional(),
  /** Milliseconds a call may take. Default: the runner's `limits.toolMs`. */
  timeoutMs: z.int().positive().max(86_400_000).optional(),
  /** callback: the name the platform knows the tool by. */
  callRef: z.string().min(1).optional(),
  call: directCallSchema.optional(),
  contextBindings: z.record(z.string(), z.string()).optional(),
  ephemeralArgs: z.array(z.string()).optional(),
  /** code */
  runtime: z.enum(["python", "node"]).optional(),
  code: z.string().optional(),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name: letters, digits and _"),
      environmentValueSchema,
    )
    .optional(),
  /** What a plugin's own kind needs beyond these fields. */
  options: jsonObjectSchema.optional(),
});
export type ToolSpec = z.infer<typeof toolSpecSchema>;

export const toolCallbackSchema = z.strictObject({
  /** http(s) URL that tool calls are posted to. */
  endpoint: httpUrlSchema,
  /** Sent verbatim as the Authorization header. */
  authorization: headerValueSchema.optional(),
});
export type ToolCallback = z.infer<typeof toolCallbackSchema>;
