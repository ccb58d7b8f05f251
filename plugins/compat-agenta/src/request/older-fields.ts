import { modelConnectionSchema, permissionSchema } from "@ambit/core/contract";
import { z } from "zod";

/** The fields of earlier wires, by level. Values that only move are validated in their new place. */
export const olderRequestSchema = z.strictObject({
  /** One string in place of messages. */
  prompt: z.string().optional(),
  permissionPolicy: z.enum(["auto", "deny"]).optional(),
  /** Credentials by the name of their variable. */
  secrets: z.record(z.string(), z.unknown()).optional(),
  provider: z.unknown().optional(),
  deployment: z.unknown().optional(),
  endpoint: modelConnectionSchema.shape.endpoint,
  credentialMode: z.unknown().optional(),
  trace: z
    .strictObject({
      traceparent: z.unknown().optional(),
      baggage: z.unknown().optional(),
      endpoint: z.unknown().optional(),
      authorization: z.unknown().optional(),
      captureContent: z.unknown().optional(),
    })
    .optional(),
  backend: z.enum(["rivet", "pi"]).optional(),
  /** Whether the run belongs to its session, and not to the connection that began it. */
  detached: z.boolean().optional(),
});
export type OlderRequest = z.infer<typeof olderRequestSchema>;

export const olderToolSchema = z.strictObject({ needsApproval: z.boolean().optional() });
export type OlderTool = z.infer<typeof olderToolSchema>;

export const olderMcpServerSchema = z.strictObject({
  transport: z.enum(["stdio", "http"]).default("stdio"),
  command: z.unknown().optional(),
  args: z.unknown().optional(),
  env: z.record(z.string(), z.unknown()).optional(),
  url: z.unknown().optional(),
  /** The server's tools that may be used; empty means all. */
  tools: z.array(z.unknown()).optional(),
  permission: permissionSchema.optional(),
});
export type OlderMcpServer = z.infer<typeof olderMcpServerSchema>;
