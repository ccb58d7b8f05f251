import { z } from "zod";
import { isJsonObject } from "../../values/json.js";
import { limits } from "../limits.js";

export const permissionSchema = z.enum(["allow", "ask", "deny"]);
export type Permission = z.infer<typeof permissionSchema>;

/** Names and their permissions. Checked without zod's record, which would drop a key `__proto__` with its denial. */
export const permissionTableSchema = z.custom<Readonly<Record<string, Permission>>>(
  (table) => {
    if (!isJsonObject(table)) return false;
    const entries = Object.entries(table);
    return (
      entries.length <= limits.entries &&
      entries.every(([, permission]) => permissionSchema.options.some((option) => option === permission))
    );
  },
  { error: 'must be an object with "allow", "ask" or "deny" by the name of a tool, 10,000 at most' },
);

const permissionModeSchema = z.enum(["allow", "ask", "deny", "allow_reads"]);
export type PermissionMode = z.infer<typeof permissionModeSchema>;

const ruleSchema = z.strictObject({
  pattern: z.string().min(1).meta({
    description:
      "`Name`, or `Name(prefix:*)`, with a prefix of at most 256 characters. `shell`, `edit`, `read` and `fetch` name the agent's own tools by what they do, as do `Bash`, `Edit`, `Write`, `Read` and `WebFetch`. A `deny` or `ask` matches if any text in the arguments begins with the prefix, an `allow` only if the argument that names the command does. A prefix is not a shell policy; the boundary is.",
  }),
  permission: permissionSchema.meta({ description: "`allow`, `ask` or `deny`." }),
});

export const permissionsSchema = z.strictObject({
  default: permissionModeSchema.default("allow_reads").meta({
    description:
      "`allow`, `ask`, `deny`, or `allow_reads`, the default: read-only tools run, others ask. It applies to the agent's own tools too, or the run is refused.",
  }),
  rules: z
    .array(ruleSchema)
    .max(limits.permissionRules)
    .optional()
    .meta({
      description: `Rules on tools by name, at most ${limits.permissionRules.toLocaleString("en")}. The strictest match applies.`,
    }),
});
export type Permissions = z.infer<typeof permissionsSchema>;
