import {
  failureSchema,
  interactionKindSchema,
  interactionPayloadSchema,
  usageSchema,
} from "@ambit/core/contract";
import { z } from "zod";

const ofRun = {
  runId: z.string(),
  sessionId: z.string().optional(),
  projectId: z.string().optional(),
  /** A text was too long for the message: the run's log has all of it. */
  truncated: z.literal(true).optional(),
};

const ended = z.strictObject({
  ...ofRun,
  output: z.string().optional(),
  /** The agent's own, or `paused`, `cancelled`. */
  stopReason: z.string().optional(),
  error: z.string().optional(),
  failure: failureSchema.pick({ code: true, retryable: true }).optional(),
  usage: usageSchema.optional(),
  traceId: z.string().optional(),
});

const interaction = z.strictObject({
  ...ofRun,
  interactionId: z.string(),
  kind: interactionKindSchema,
  /** What is asked: `toolName`, `input`. */
  payload: interactionPayloadSchema.optional(),
});

const message = <Type extends string, Data extends z.ZodType>(type: Type, data: Data) =>
  z.strictObject({ type: z.literal(type), timestamp: z.iso.datetime(), data });

/** The body of a webhook, signed by the Standard Webhooks specification. Redacted like every event. */
export const webhookMessageSchema = z.discriminatedUnion("type", [
  message("run.finished", ended),
  message("run.failed", ended),
  message("interaction.requested", interaction),
  message("interaction.expired", interaction),
]);
export type WebhookMessage = z.infer<typeof webhookMessageSchema>;
