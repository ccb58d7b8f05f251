import { z } from "zod";
import { capabilitySchema } from "../capability.js";
import { failureSchema } from "./failure.js";
import { receiptActorSchema, receiptSchema, siteSchema } from "./receipt.js";
import { runResultSchema, streamRecordSchema } from "./result.js";
import { warningSchema } from "./warning.js";

/** The body of every response with another status than 200: a result, as far as there was a run. */
export const failedResultSchema = runResultSchema.partial({ runId: true, events: true }).extend({
  ok: z.literal(false),
  error: z.string(),
  failure: failureSchema,
});
export type FailedResult = z.infer<typeof failedResultSchema>;

/** The records of a stream: as `StreamRecord`, or for a refused run the one record that says why. */
export const responseRecordSchema = z.discriminatedUnion("kind", [
  streamRecordSchema.options[0],
  z.strictObject({ kind: z.literal("result"), result: z.union([runResultSchema, failedResultSchema]) }),
]);

/** `POST /plan`, accepted: the receipt as far as it is known before anything was opened. */
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
  /** As in a result. */
  warnings: z.array(warningSchema).optional(),
});
export type PlanResponse = z.infer<typeof planResponseSchema>;

/** What one probe saw of one claim. */
export const findingSchema = z.discriminatedUnion("proven", [
  z.strictObject({
    capability: capabilitySchema,
    proven: z.literal(true),
    /** What was done to see it, e.g. "a connect to a host listener worked outside and failed inside". */
    how: z.string(),
  }),
  z.strictObject({
    capability: capabilitySchema,
    proven: z.literal(false),
    /** The host's own words where there are any: `bwrap: No permissions to create new namespace`. */
    reason: z.string(),
    /** What a deployer does about it: a command, a flag, another backend. */
    fix: z.string(),
  }),
]);
export type Finding = z.infer<typeof findingSchema>;

/** `GET /plugins`: what every actor claims, and what its probe found on this host, how and when. */
export const pluginsResponseSchema = z.strictObject({
  actors: z.array(
    z.strictObject({
      plugin: z.string(),
      kind: receiptActorSchema.shape.kind,
      name: z.string(),
      site: siteSchema,
      claims: z.array(capabilitySchema),
      findings: z.array(findingSchema),
      /** ISO 8601. */
      probedAt: z.string(),
    }),
  ),
});
export type PluginsResponse = z.infer<typeof pluginsResponseSchema>;

/** `GET /health`: that the server is up, and whether it is still probing its host. No more: it needs no token. */
export const healthResponseSchema = z.strictObject({ status: z.literal("ok"), probing: z.boolean() });
export type HealthResponse = z.infer<typeof healthResponseSchema>;

/**
 * `GET /subscription-status`: for each name of each harness, whether this runner holds the agent's own login. It never
 * does, since every session has a fresh home: a run brings its credential in `modelConnection`.
 */
export const subscriptionStatusSchema = z.strictObject({
  version: z.literal(1),
  harnesses: z.record(z.string(), z.strictObject({ state: z.literal("not_configured") })),
});
export type SubscriptionStatus = z.infer<typeof subscriptionStatusSchema>;

/** `POST /kill`: the session to end, with the run that uses it. */
export const killRequestSchema = z.strictObject({
  sessionId: z.string().min(1).max(256),
  projectId: z.string().nullish(),
});
export type KillRequest = z.infer<typeof killRequestSchema>;

/** `ended` is false when there was nothing to end, which is no error; `message` then names what was not found. */
export const endedResponseSchema = z.strictObject({
  ok: z.literal(true),
  ended: z.boolean(),
  message: z.string().optional(),
});
export type EndedResponse = z.infer<typeof endedResponseSchema>;

/** `POST /runs/{runId}/interactions/{interactionId}`. */
export const forwardedResponseSchema = z.strictObject({ ok: z.literal(true) });
export type ForwardedResponse = z.infer<typeof forwardedResponseSchema>;
