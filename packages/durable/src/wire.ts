import {
  failureCodeSchema,
  interactionKindSchema,
  interactionPayloadSchema,
  receiptSchema,
  runOutcomeSchema,
  runResultSchema,
  usageSchema,
  webhookEventSchema,
} from "@ambit/core/contract";
import { z } from "zod";
import { deliveryStateSchema, interactionStateSchema, runStateSchema } from "./store.js";

const time = z.iso.datetime();

/** One message of a run's webhook. */
const deliveryInfoSchema = z.strictObject({
  /** The header `webhook-id` of every attempt. */
  id: z.string(),
  event: webhookEventSchema,
  /** The host of the receiver's address. */
  host: z.string(),
  state: deliveryStateSchema,
  attempts: z.int(),
  /** The HTTP status of the last attempt's answer, if it had one. */
  status: z.int().optional(),
  /** Why the last attempt failed. */
  error: z.string().optional(),
  createdAt: time,
  /** When the next attempt is due. */
  dueAt: time.optional(),
});

/** A message by itself: `POST /deliveries/{deliveryId}/redeliver`. */
export const storedDeliverySchema = deliveryInfoSchema.extend({
  runId: z.string(),
  projectId: z.string().optional(),
});
export type StoredDelivery = z.infer<typeof storedDeliverySchema>;

/** `GET /deliveries`: the messages of all runs' webhooks, the newest first. */
export const deliveriesResponseSchema = z.strictObject({ deliveries: z.array(storedDeliverySchema) });
export type DeliveriesResponse = z.infer<typeof deliveriesResponseSchema>;

/** The result of an ended run in short, so that a list needs no results. */
export const runSummarySchema = z.strictObject({
  stopReason: z.string().optional(),
  /** The code of the run's failure. */
  failure: failureCodeSchema.optional(),
  /** The begin of its error, or the end of what the agent said: 200 characters at most. */
  excerpt: z.string().optional(),
  model: z.string().optional(),
  usage: usageSchema.optional(),
  receipt: receiptSchema
    .pick({ confinement: true, required: true })
    /** Capabilities with a gap that `best_effort` accepted. */
    .extend({ accepted: receiptSchema.shape.required })
    .optional(),
});
export type RunSummary = z.infer<typeof runSummarySchema>;

/** `GET /runs/{runId}`: a run as the store has it. */
export const runInfoSchema = z.strictObject({
  runId: z.string(),
  state: runStateSchema,
  harness: z.string(),
  sandbox: z.string(),
  sessionId: z.string().optional(),
  projectId: z.string().optional(),
  /** Increases with each owner: `x-ambit-fence` of a callback that is lower comes from an earlier one. */
  fence: z.int(),
  /** Events in its log so far: `after` of `GET /runs/{runId}/events` counts them. */
  events: z.int(),
  createdAt: time,
  startedAt: time.optional(),
  endedAt: time.optional(),
  /** Questions that wait for an answer. */
  openQuestions: z.int(),
  /** Once it has ended. */
  outcome: runOutcomeSchema.optional(),
  summary: runSummarySchema.optional(),
  /** Once it has ended: with its receipt and usage, and without events, which are in the log. */
  result: runResultSchema.optional(),
  /** The messages of its webhook, the newest first, at most 100. Absent without a webhook. */
  deliveries: z.array(deliveryInfoSchema).optional(),
});
export type RunInfo = z.infer<typeof runInfoSchema>;

/** `GET /runs`: the newest first, without their results. */
export const runsResponseSchema = z.strictObject({
  runs: z.array(runInfoSchema.omit({ result: true, deliveries: true })),
});
export type RunsResponse = z.infer<typeof runsResponseSchema>;

/** 202: the run goes on by itself. The header `Location` says where. */
export const acceptedResponseSchema = z.strictObject({
  ok: z.literal(true),
  runId: z.string(),
  /** `ended`: of a repeated request, whose run has ended. */
  state: z.enum(["queued", "running", "ended"]),
});
export type AcceptedResponse = z.infer<typeof acceptedResponseSchema>;

/** `GET /sessions`: those that are kept open, by any replica; the one that was used last first. */
export const sessionsResponseSchema = z.strictObject({
  sessions: z.array(
    z.strictObject({
      sessionId: z.string(),
      projectId: z.string().optional(),
      sandbox: z.string(),
      /** The address of the replica that has it. */
      address: z.string(),
      createdAt: time,
      usedAt: time,
    }),
  ),
});
export type SessionsResponse = z.infer<typeof sessionsResponseSchema>;

/** `GET /runs/{runId}/request` */
export const runRequestResponseSchema = z.strictObject({
  /** The request as `POST /run` takes it, with `[redacted]` in place of each secret. */
  request: z.record(z.string(), z.unknown()),
});
export type RunRequestResponse = z.infer<typeof runRequestResponseSchema>;

/** Who answered a question by `POST /runs/{runId}/interactions/{interactionId}`. */
export const answererSchema = z.strictObject({
  caller: z.enum(["operator", "tenant", "page"]),
  /** The person, where the console's sign-in link names one. */
  user: z.string().optional(),
  /** Whether an approval was given. */
  approved: z.boolean().optional(),
});
export type Answerer = z.infer<typeof answererSchema>;

/** `GET /interactions`: what runs asked their users, the newest first. */
export const interactionsResponseSchema = z.strictObject({
  interactions: z.array(
    z.strictObject({
      id: z.string(),
      runId: z.string(),
      /** The session in which a later turn uses the answer. */
      sessionId: z.string().optional(),
      projectId: z.string().optional(),
      kind: interactionKindSchema,
      payload: interactionPayloadSchema,
      state: interactionStateSchema,
      createdAt: time,
      answeredAt: time.optional(),
      /** Absent for an answer that a request brought, in its messages. */
      answeredBy: answererSchema.optional(),
    }),
  ),
});
export type InteractionsResponse = z.infer<typeof interactionsResponseSchema>;
