import { isJsonObject, limits, type Permission, permissionSchema } from "@ambit/core/contract";
import { z } from "zod";

/** What one tool of an integration may do. */
export interface GatewayTool {
  readonly permission: Permission;
  /** Null or absent: unknown. */
  readonly readOnly?: boolean | null;
}

function isTool(value: unknown): value is GatewayTool {
  if (!isJsonObject(value)) return false;
  const { permission, readOnly = null, ...unknown } = value;
  return (
    permissionSchema.safeParse(permission).success &&
    (readOnly === null || typeof readOnly === "boolean") &&
    Object.keys(unknown).length === 0
  );
}

const toolsSchema = z.custom<Readonly<Record<string, GatewayTool>>>(
  (table) => {
    if (!isJsonObject(table)) return false;
    const tools = Object.values(table);
    return tools.length <= limits.entries && tools.every(isTool);
  },
  {
    error:
      'must have {permission: "allow" | "ask" | "deny", readOnly?} by the name of a tool, 10,000 at most',
  },
);

const nameSchema = z.string().regex(/\S/, "must not be blank");

const integrationSchema = z.strictObject({
  /** Who serves it, such as `composio`. */
  provider: nameSchema,
  /** The user's connection to it. */
  connection: nameSchema,
  /** The version of its tools: a fixed one, since the permissions are those of that version. */
  toolkitVersion: nameSchema.refine((version) => version.trim().toLowerCase() !== "latest", {
    error: "must be a fixed version, not latest",
  }),
  tools: toolsSchema,
});

/** Which tools of which integrations the gateway's tools may find and run. What it doesn't name is denied. */
export const gatewayPolicySchema = z.strictObject({
  integrations: z.record(nameSchema, integrationSchema).meta({
    description:
      "By the integration's name: `{provider, connection, toolkitVersion, tools: {NAME: {permission, readOnly}}}`. A tool that isn't named is denied. The agent never sees it.",
  }),
});
export type GatewayPolicy = z.infer<typeof gatewayPolicySchema>;
