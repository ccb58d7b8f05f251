import { z } from "zod";
import { headerValueSchema, httpUrlSchema } from "../../values/http.js";
import { jsonObjectSchema } from "../../values/json.js";
import { environmentValueSchema } from "../../values/names.js";
import { secret } from "../../values/secret.js";
import { permissionSchema } from "./permissions.js";

/** How a user interface may show a call. The runner copies it to `tool_call` and `tool_result`, and never interprets it. */
export const renderHintSchema = z.looseObject({
  /** `component`, `source`, `spec`, `connect`, `elicitation`, or what a newer user interface knows. */
  kind: z.string().min(1),
});

/** A call that goes straight to a path of the platform instead of its tool endpoint. Excludes `callRef`. */
export const directCallSchema = z.strictObject({
  method: z.enum(["GET", "POST", "PUT", "DELETE"]).meta({ description: "`GET`, `POST`, `PUT` or `DELETE`." }),
  path: z.string().min(1).meta({ description: "Absolute path, on the origin of `toolCallback.endpoint`." }),
  body: jsonObjectSchema.optional().meta({ description: "Fields that the model can't change." }),
  context: jsonObjectSchema.optional().meta({
    description: "Dotted path in the body to `$ctx.…`, filled from `runContext`.",
  }),
  args_into: z.string().optional().meta({
    description: "Dotted path in the body where the arguments go. Default: its root.",
  }),
});
export type DirectCall = z.infer<typeof directCallSchema>;

const variableNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name: letters, digits and _");

/**
 * A tool, on three independent axes: who executes it (`kind`), whether it may run (`permission`, `readOnly`), how it
 * looks (`render`). The executor of a kind decides which other fields it needs.
 */
export const toolSpecSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . -")
    .meta({ description: "1 to 128 of `A-Z a-z 0-9 _ . -`; unique." }),
  description: z.string().optional().meta({ description: "Tells the model what the tool does." }),
  inputSchema: jsonObjectSchema.default({ type: "object", properties: {} }).meta({
    description:
      "JSON Schema of the arguments: passed to the agent unchanged, and every call is checked against it. A keyword that holds something else than JSON Schema says is refused. Default: an object without properties.",
  }),
  kind: z.string().min(1).default("callback").meta({
    description: "Who executes it: `callback` (the default), `code`, `client`, or a kind of a loaded plugin.",
  }),
  permission: permissionSchema.optional().meta({
    description: "`allow`, `ask` or `deny`: overrides server, rules and default.",
  }),
  readOnly: z.boolean().optional().meta({
    description: "Whether it only reads: under `allow_reads` such a tool runs, others ask.",
  }),
  render: renderHintSchema.optional().meta({
    description:
      "How a user interface may show it: copied onto its `tool_call` and `tool_result` events. Its `kind` is `component`, `source`, `spec`, `connect`, `elicitation`, or any other text.",
  }),
  timeoutMs: z.int().positive().max(86_400_000).optional().meta({
    description: "Milliseconds a call may take, 24 h at most. Default: the runner's `limits.toolMs`.",
  }),
  callRef: z.string().min(1).optional().meta({
    description: "`callback`: the name under which the platform knows the tool.",
  }),
  call: directCallSchema.optional().meta({
    description: "`callback`: a call that goes directly to a path of the platform. Excludes `callRef`.",
  }),
  contextBindings: z.record(z.string(), z.string()).optional().meta({
    description: "Dotted path in the arguments to `$ctx.…`, filled from `runContext`.",
  }),
  ephemeralArgs: z.array(z.string()).optional().meta({
    description: "Names of arguments that are shown to people and not sent to the platform.",
  }),
  runtime: z.enum(["python", "node"]).optional().meta({ description: "`code`: `python` or `node`." }),
  code: z.string().optional().meta({ description: "`code`: the source; it defines `main`." }),
  env: z.record(variableNameSchema, secret(environmentValueSchema)).optional().meta({
    description: "`code`: variables of this tool's process; no other process can read them.",
  }),
  options: jsonObjectSchema.optional().meta({
    description: "What a plugin's own kind needs beyond these fields.",
  }),
});
export type ToolSpec = z.infer<typeof toolSpecSchema>;

export const toolCallbackSchema = z.strictObject({
  endpoint: secret(httpUrlSchema, "url").meta({
    description:
      "The http(s) URL that calls are posted to. A destination of the run: a restricted network must list it.",
  }),
  authorization: secret(headerValueSchema, "authorization").optional().meta({
    description: "Sent verbatim as the `Authorization` header. Never enters the sandbox.",
  }),
});
