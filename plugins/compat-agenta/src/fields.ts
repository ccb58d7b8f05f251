import type { DialectFields } from "@ambit/core/contract";
import { z } from "zod";
import { gatewayPolicySchema } from "./gateway-policy.js";

/** The command that a request carries out. */
export const commandIdSchema = z.string().min(1).max(256);

/** The fields of its requests that the contract doesn't have. */
export const fields = {
  "": {
    gatewayPolicy: gatewayPolicySchema.optional().meta({
      description:
        "What the tools with the `callRef` `gateway.search` and `gateway.run` may find and run: the runner decides on each call, and adds the integration's connection and version to it. Such a tool without a policy is refused.",
    }),
    controlCommandId: commandIdSchema.optional().meta({
      description:
        "The command that this run carries out: at most one run per id and project begins within 30 minutes, or while a store keeps its run. A repeated request waits for the first one and gets its result.",
    }),
    modelCapabilities: z
      .strictObject({
        inputModalities: z
          .array(z.string())
          .optional()
          .meta({ effect: "informational", description: "`text`, `image`, …" }),
      })
      .optional()
      .meta({
        effect: "informational",
        description: "What the platform knows about the model. Ambit asks the agent instead.",
      }),
    connection: z
      .strictObject({
        mode: z
          .string()
          .optional()
          .meta({ effect: "informational", description: "How the platform resolved it." }),
        slug: z
          .string()
          .optional()
          .meta({ effect: "informational", description: "Its name on the platform." }),
      })
      .optional()
      .meta({
        effect: "informational",
        description: "The platform's own name for the connection that `modelConnection` was resolved from.",
      }),
    tools: z.array(z.string()).optional().meta({
      effect: "informational",
      description:
        "Names of built-in tools to enable. Agents bring their own; `permissions` decides on them.",
    }),
    streamId: z
      .string()
      .optional()
      .meta({ effect: "informational", description: "The platform's id of the stream." }),
    effectiveParameters: z.unknown().optional().meta({
      effect: "informational",
      description: "The platform's own record of what it ran.",
    }),
  },
  "messages[]": {
    displayContent: z.string().optional().meta({
      effect: "informational",
      description: "What a user interface shows in place of `content`. The agent never gets it.",
    }),
  },
  modelConnection: {
    customConnection: z.boolean().optional().meta({
      effect: "informational",
      description:
        "Whether the model is served by the user's own endpoint: the platform's prices then don't apply.",
    }),
    protocol: z.string().optional().meta({
      effect: "informational",
      description: "A further API that the endpoint offers.",
    }),
  },
} satisfies DialectFields;
