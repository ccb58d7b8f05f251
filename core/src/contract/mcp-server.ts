import { z } from "zod";
import { environmentSchema } from "./environment.js";
import { headerNameSchema, headersSchema, headerValueSchema, httpUrlSchema } from "./http.js";
import { permissionSchema } from "./tool.js";

/** The name under which the request's own tools are published to the agent. */
export const ownServerName = "ambit";

const httpConnectionSchema = z.strictObject({
  type: z.literal("http"),
  url: httpUrlSchema,
  headers: headersSchema.optional(),
  credentials: z
    .array(
      z.strictObject({
        binding: z.strictObject({ kind: z.literal("header"), name: headerNameSchema }),
        value: headerValueSchema,
        usage: z.literal("opaque_http").default("opaque_http"),
      }),
    )
    .optional(),
});

const argumentSchema = z.string().regex(/^[^\0]*$/, "must not contain NUL: a command line can't carry it");

const stdioConnectionSchema = z.strictObject({
  type: z.literal("stdio"),
  command: argumentSchema.min(1),
  args: z.array(argumentSchema).optional(),
  env: environmentSchema.optional(),
});

const policyToolsSchema = z
  .strictObject({
    mode: z.enum(["all", "include"]).default("all"),
    /** Read with `include` only: the server's tools that the agent may see. */
    names: z.array(z.string()).optional(),
  })
  .superRefine(({ mode, names }, context) => {
    if (mode === "all" && names !== undefined && names.length > 0) {
      const message = 'must be empty when the mode is "all": remove it, or set the mode to "include"';
      context.addIssue({ code: "custom", path: ["names"], message });
    }
    if (mode === "include" && names === undefined) {
      const message = 'is required with the mode "include"; an empty list shows no tool';
      context.addIssue({ code: "custom", path: ["names"], message });
    }
  });

/** An MCP server that the request brings. `stdio` ones run inside the sandbox. */
export const mcpServerSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 of A-Z a-z 0-9 _ -")
    .refine((name) => name !== ownServerName, {
      error: `'${ownServerName}' is the name of the runner's own server: rename this one`,
    }),
  connection: z.discriminatedUnion("type", [httpConnectionSchema, stdioConnectionSchema]),
  policy: z
    .strictObject({
      tools: policyToolsSchema.optional(),
      permission: permissionSchema.optional(),
    })
    .optional(),
});
export type McpServer = z.infer<typeof mcpServerSchema>;
