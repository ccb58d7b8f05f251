import { z } from "zod";
import { headerNameSchema, headersSchema, headerValueSchema, httpUrlSchema } from "../../values/http.js";
import { environmentNameSchema, environmentValueSchema } from "../../values/names.js";
import { secret } from "../../values/secret.js";
import { permissionSchema, permissionTableSchema } from "./permissions.js";

/** The name under which the request's own tools are published to the agent. */
export const ownServerName = "ambit";

const credentialSchema = z.strictObject({
  binding: z
    .strictObject({
      kind: z.literal("header").meta({ description: "`header`." }),
      name: headerNameSchema.meta({ description: "The header's name." }),
    })
    .meta({ description: "Where the value goes." }),
  value: secret(headerValueSchema, "authorization").meta({ description: "The secret; one line." }),
  usage: z.literal("opaque_http").default("opaque_http").meta({
    description: "`opaque_http`, the default: only the server reads it.",
  }),
});

const httpConnectionSchema = z.strictObject({
  type: z.literal("http").meta({ description: "`http`: called by the runner." }),
  url: secret(httpUrlSchema, "url").meta({
    description: "`http`: http(s) URL. A destination of the run: a restricted network must list it.",
  }),
  headers: secret(headersSchema, "headers")
    .optional()
    .meta({ description: "`http`: headers that are not secret." }),
  credentials: z.array(credentialSchema).optional().meta({
    description: "`http`: headers that are secret. They never enter the sandbox.",
  }),
});

const argumentSchema = z.string().regex(/^[^\0]*$/, "must not contain NUL: a command line can't carry it");

const stdioConnectionSchema = z.strictObject({
  type: z.literal("stdio").meta({ description: "`stdio`: a process inside the sandbox." }),
  command: argumentSchema.min(1).meta({
    description: "`stdio`: the program, run inside the sandbox.",
  }),
  args: z.array(argumentSchema).optional().meta({ description: "`stdio`: its arguments." }),
  env: z.record(environmentNameSchema, secret(environmentValueSchema)).optional().meta({
    description: "`stdio`: variables of this server's process only.",
  }),
});

const policyToolsSchema = z
  .strictObject({
    mode: z
      .enum(["all", "include"])
      .default("all")
      .meta({ description: "`all`, the default, or `include`." }),
    names: z.array(z.string()).optional().meta({
      description: "With `include`: the tools that are shown. Refused with `all`.",
    }),
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

const policySchema = z.strictObject({
  tools: policyToolsSchema.optional().meta({ description: "Which of its tools the agent sees." }),
  permission: permissionSchema.optional().meta({
    description: "`allow`, `ask` or `deny`: overrides rules and default.",
  }),
  toolPermissions: permissionTableSchema.optional().meta({
    description:
      "`allow`, `ask` or `deny` by the server's own name of a tool: overrides `permission`, rules and default. With it, a tool that it doesn't name has `newToolPermission`.",
  }),
  newToolPermission: permissionSchema.optional().meta({
    description:
      "The permission of every tool that `toolPermissions` doesn't name; overrides `permission`. Default: `ask` where there are `toolPermissions`.",
  }),
});

/** An MCP server that the request brings. `stdio` ones run inside the sandbox. */
export const mcpServerSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 of A-Z a-z 0-9 _ -")
    .refine((name) => name !== ownServerName, {
      error: `'${ownServerName}' is the name of the runner's own server: rename this one`,
    })
    .meta({
      description: `1 to 64 of \`A-Z a-z 0-9 _ -\`; unique. \`${ownServerName}\` is the runner's own.`,
    }),
  connection: z.discriminatedUnion("type", [httpConnectionSchema, stdioConnectionSchema]).meta({
    description: "How it is reached.",
  }),
  policy: policySchema.optional().meta({
    description: "What the agent may use of it. Default: all its tools, subject to `permissions`.",
  }),
});
export type McpServer = z.infer<typeof mcpServerSchema>;
