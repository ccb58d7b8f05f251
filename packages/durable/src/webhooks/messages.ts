import { randomUUID } from "node:crypto";
import {
  type AgentEventOf,
  failureSchema,
  type InteractionPayload,
  idOfRun,
  interactionKindSchema,
  interactionPayloadSchema,
  type RunRequest,
  type RunResult,
  usageSchema,
} from "@ambit/core/contract";
import { pieceEnd } from "@ambit/core/plugin";
import { z } from "zod";
import type { Sealing } from "../sealing.js";
import type { Delivery, NewDelivery, RunWebhook, StoredInteraction } from "../store/index.js";

const runFields = {
  runId: z.string(),
  sessionId: z.string().optional(),
  projectId: z.string().optional(),
  /** A text was too long for the message: the run's log has all of it. */
  truncated: z.literal(true).optional(),
};

const ended = z.strictObject({
  ...runFields,
  output: z.string().optional(),
  /** The agent's own, or `paused`, `cancelled`. */
  stopReason: z.string().optional(),
  error: z.string().optional(),
  failure: failureSchema.pick({ code: true, retryable: true }).optional(),
  usage: usageSchema.optional(),
  traceId: z.string().optional(),
});

const interaction = z.strictObject({
  ...runFields,
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

/** Characters of an output or of a question in a message: receivers refuse large bodies. */
const maxTextLength = 16_384;

/** What messages say of the run that they are about. */
export interface MessageSource {
  /** In the store. */
  readonly id: string;
  readonly session: string | undefined;
  readonly project: string | undefined;
  readonly webhook: RunWebhook | undefined;
}

/** What a run's webhook is sent about its end. Undefined where it doesn't ask for that. */
export function aboutEnd(run: MessageSource, result: RunResult): NewDelivery | undefined {
  const { ok, output, stopReason, error, failure, usage, traceId } = result;
  const cut = [output, error].some((text) => text !== undefined && text.length > maxTextLength);
  const data = {
    ...ofRun({ ...run, session: run.session ?? result.sessionId }),
    output: shortened(output),
    stopReason,
    error: shortened(error),
    usage,
    traceId,
    ...(failure === undefined ? {} : { failure: { code: failure.code, retryable: failure.retryable } }),
    ...(cut ? { truncated: true as const } : {}),
  };
  const [message] = delivery(run, { type: ok ? "run.finished" : "run.failed", timestamp: now(), data });
  return message;
}

export function aboutQuestion(
  run: MessageSource,
  { id, kind, payload }: AgentEventOf<"interaction_request">,
): readonly NewDelivery[] {
  return delivery(run, {
    type: "interaction.requested",
    timestamp: now(),
    data: { ...ofRun(run), interactionId: id, kind, ...payloadOf(JSON.stringify(payload ?? {})) },
  });
}

/** A question is over without an answer. */
export function aboutExpiry(
  run: MessageSource,
  { id, kind, payload }: Pick<StoredInteraction, "id" | "kind"> & { readonly payload?: string },
): readonly NewDelivery[] {
  const shownPayload = payload === undefined ? {} : payloadOf(payload);
  const data = { ...ofRun(run), interactionId: id, kind: interactionKindSchema.parse(kind), ...shownPayload };
  return delivery(run, { type: "interaction.expired", timestamp: now(), data });
}

function delivery({ webhook }: MessageSource, message: WebhookMessage): readonly NewDelivery[] {
  if (webhook?.events.includes(message.type) !== true) return [];
  const { target, host } = webhook;
  return [{ id: `msg_${randomUUID()}`, target, host, event: message.type, body: JSON.stringify(message) }];
}

function ofRun({ id, session, project }: MessageSource) {
  return { runId: idOfRun(id), sessionId: session, projectId: project };
}

/** Without the changes of files where only they are too long: the run's events have them. */
function payloadOf(json: string) {
  const payload: InteractionPayload = JSON.parse(json);
  if (json.length <= maxTextLength) return { payload };
  const { changes, ...others } = payload;
  const isFitting = changes !== undefined && JSON.stringify(others).length <= maxTextLength;
  return { truncated: true as const, ...(isFitting ? { payload: others } : {}) };
}

function shortened(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= maxTextLength) return text;
  return text.slice(0, pieceEnd(text, maxTextLength));
}

const now = () => new Date().toISOString();

/** The webhook of a request as it is stored: the address often holds a secret of the receiver's. */
export function sealedWebhook(
  { webhook }: Pick<RunRequest, "webhook">,
  runId: string,
  sealing: Sealing,
): RunWebhook | undefined {
  if (webhook === undefined) return undefined;
  const { url, events } = webhook;
  return { target: sealing.seal(runId, url), host: new URL(url).host, events };
}

/** @throws Error for what another key sealed */
export function urlOf({ target, runId }: Delivery, sealing: Sealing): URL {
  return new URL(String(sealing.unseal(runId, target)));
}
