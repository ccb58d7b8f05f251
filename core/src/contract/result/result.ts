import { z } from "zod";
import { messageSchema } from "../request/message.js";
import { agentEventSchema, eventRecordSchema, usageSchema } from "./events.js";
import { errorDetailSchema, failureSchema } from "./failure.js";
import { receiptSchema } from "./receipt.js";

/** A part of an accepted request that has no effect, or not the one that it seems to have. The run continues. */
export const warningSchema = z.strictObject({
  /** The path of the field, such as `permissions.rules[2].pattern`; absent if the warning isn't about one field. */
  path: z.string().optional(),
  message: z.string(),
});
export type Warning = z.infer<typeof warningSchema>;

export const harnessCapabilitiesSchema = z.strictObject({
  textMessages: z.boolean(),
  images: z.boolean(),
  fileAttachments: z.boolean(),
  mcpTools: z.boolean(),
  toolCalls: z.boolean(),
  reasoning: z.boolean(),
  planMode: z.boolean(),
  permissions: z.boolean(),
  usage: z.boolean(),
  streamingDeltas: z.boolean(),
  sessionLifecycle: z.boolean(),
});
export type HarnessCapabilities = z.infer<typeof harnessCapabilitiesSchema>;

export const runResultSchema = z.strictObject({
  ok: z.boolean(),
  runId: z.string(),
  output: z.string().optional(),
  messages: z.array(messageSchema).optional(),
  /** The run's events. Empty in a stream's terminal record, which follows the events. */
  events: z.array(agentEventSchema),
  usage: usageSchema.optional(),
  /** The agent's own stop reason, or `paused`, `cancelled`. */
  stopReason: z.string().optional(),
  capabilities: harnessCapabilitiesSchema.optional(),
  sessionId: z.string().optional(),
  model: z.string().optional(),
  traceId: z.string().optional(),
  /** A readable sentence, present if `ok` is false. */
  error: z.string().optional(),
  failure: failureSchema.optional(),
  /** The same failure for clients of the runner that Ambit replaces. */
  errorDetail: errorDetailSchema.optional(),
  /** The sandbox that was chosen. */
  sandbox: z.string().optional(),
  /** The parts of the request that have no effect, or not the one that they seem to have; absent if there are none. */
  warnings: z.array(warningSchema).optional(),
  receipt: receiptSchema.optional(),
});
export type RunResult = z.infer<typeof runResultSchema>;

/** The outcome of a run. `paused`: it waits for its user. `cancelled`: its caller ended it. Every other failure is `failed`. */
export const runOutcomeSchema = z.enum(["completed", "paused", "cancelled", "failed"]);
export type RunOutcome = z.infer<typeof runOutcomeSchema>;

/** Pure. */
export function outcomeOf({ ok, stopReason }: Pick<RunResult, "ok" | "stopReason">): RunOutcome {
  if (!ok) return "failed";
  return stopReason === "paused" || stopReason === "cancelled" ? stopReason : "completed";
}

/** The body of every response with a status other than 200: a result, as far as there was a run. */
export const failedResultSchema = runResultSchema.partial({ runId: true, events: true }).extend({
  ok: z.literal(false),
  error: z.string(),
  failure: failureSchema,
});
export type FailedResult = z.infer<typeof failedResultSchema>;

/** The response to an accepted `POST /plan`: the receipt, as far as it is known before anything is opened. */
export const planResponseSchema = z.strictObject({
  ok: z.literal(true),
  plan: receiptSchema.pick({
    sandbox: true,
    enforcement: true,
    required: true,
    guarantees: true,
    actors: true,
    accepted: true,
  }),
  /** The same warnings as in a result. */
  warnings: z.array(warningSchema).optional(),
});
export type PlanResponse = z.infer<typeof planResponseSchema>;

/** A record of a stream: one line of `application/x-ndjson`, one `data:` of `text/event-stream`. One `result` ends a stream. */
export const streamRecordSchema = z.discriminatedUnion("kind", [
  eventRecordSchema,
  z.strictObject({ kind: z.literal("result"), result: runResultSchema }),
]);
export type StreamRecord = z.infer<typeof streamRecordSchema>;
