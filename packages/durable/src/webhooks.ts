import { randomUUID } from "node:crypto";
import { messageOf } from "@ambit/core";
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
import { type Log, pieceEnd, unlessAborted, type WebhookAttempt } from "@ambit/core/plugin";
import { z } from "zod";
import type { Sealing } from "./sealing.js";
import type {
  Delivery,
  DeliveryOutcome,
  NewDelivery,
  RunWebhook,
  Store,
  StoredInteraction,
} from "./store.js";

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
  /** The run's id in the store. */
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

/** A question's payload. It lacks the changes of files where only they are too long: the run's events have them. */
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
function urlOf({ target, runId }: Delivery, sealing: Sealing): URL {
  return new URL(String(sealing.unseal(runId, target)));
}

/** Milliseconds between two checks for due deliveries. */
const pollMs = 1_000;
/** Most simultaneous attempts: in all, to one host, and of one project. */
const atOnce = { all: 32, host: 4, project: 8 } as const;
/** Factor between two pauses, and the longest pause. */
const growth = 4;
const maxPauseMs = 6 * 3_600_000;
/** Milliseconds after an attempt's time limit before another replica may start the next. */
const marginMs = 15_000;
/** Milliseconds that the sender may take beyond that limit: then its place is free again, whatever keeps it. */
const graceMs = 1_000;

/** The message to post. The sender signs it. */
export interface WebhookPost {
  readonly id: string;
  readonly url: URL;
  readonly body: string;
  readonly project: string | undefined;
}

/** Outcome of one attempt. */
export interface WebhookResponse {
  readonly delivered: boolean;
  readonly status?: number;
  /** Why it wasn't delivered; contains no secret. */
  readonly error?: string;
  /** Whether another attempt can't succeed. Default: it may. */
  readonly isFinal?: boolean;
  /** Milliseconds that the receiver asked to wait before the next attempt. */
  readonly retryAfterMs?: number;
}

/** Posts messages to their receivers. */
export interface WebhookSender {
  /** Whether there is a secret to sign with; without one, nothing is sent. */
  readonly isConfigured: boolean;
  /** Attempts before a message counts as failed. */
  readonly attempts: number;
  /** Milliseconds before the second one. */
  readonly retryMs: number;
  /** Milliseconds of one attempt. */
  readonly timeoutMs: number;
  /** Takes no longer than `timeoutMs`. */
  send(post: WebhookPost, signal: AbortSignal): Promise<WebhookResponse>;
}

export interface DeliveriesOptions {
  readonly store: Pick<Store, "takeDeliveries" | "settleDelivery" | "redeliver">;
  readonly sealing: Sealing;
  readonly sender: WebhookSender;
  /** A message was posted, or couldn't be. */
  readonly onPosted: (attempt: WebhookAttempt) => void;
  readonly log: Log;
}

/**
 * Sends pending messages of all replicas' runs from the store. A message is reserved during an attempt; if the replica
 * dies, another one makes the next attempt. Receivers recognise a duplicate message by its id.
 */
export class Deliveries {
  readonly #sending = new Map<string, Delivery>();
  readonly #attempts = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;

  constructor(readonly options: DeliveriesOptions) {}

  start(): void {
    if (!this.options.sender.isConfigured) return;
    this.#timer = setInterval(() => this.runNow(), pollMs);
    this.#timer.unref();
    this.runNow();
  }

  /** Checks for due messages soon. */
  runNow(): void {
    if (this.#timer === undefined) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#lookAgain = false;
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined;
      if (this.#lookAgain) this.runNow();
    });
  }

  /**
   * Has a message sent again, with as many attempts as a new one.
   * @param project undefined: of any project. @returns undefined where there is none
   */
  async again(id: string, project: string | null | undefined): Promise<Delivery | undefined> {
    const delivery = await this.options.store.redeliver(id, project);
    this.runNow();
    return delivery;
  }

  /** Ends the attempts under way; what they were to deliver stays due. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#closing.abort();
    await this.#looking;
    await Promise.all(this.#attempts);
  }

  async #look(): Promise<void> {
    const { store, sender, log } = this.options;
    try {
      while (this.#timer !== undefined && this.#sending.size < atOnce.all) {
        // One by one: each may use up its host's or project's share.
        const [next] = await store.takeDeliveries(1, sender.timeoutMs + marginMs, this.#full());
        if (next === undefined) return;
        this.#begin(next);
      }
    } catch (error) {
      log.warn({ error: messageOf(error) }, "due webhooks could not be read from the store");
    }
  }

  #begin(delivery: Delivery): void {
    const key = `${delivery.id} ${delivery.attempts}`;
    this.#sending.set(key, delivery);
    const attempt = this.#attempt(delivery).finally(() => {
      this.#sending.delete(key);
      this.#attempts.delete(attempt);
      this.runNow();
    });
    this.#attempts.add(attempt);
  }

  #full(): { readonly hosts: readonly string[]; readonly projects: readonly string[] } {
    const sending = [...this.#sending.values()];
    return {
      hosts: namesOver(
        sending.map(({ host }) => host),
        atOnce.host,
      ),
      projects: namesOver(
        sending.flatMap(({ project }) => project ?? []),
        atOnce.project,
      ),
    };
  }

  async #attempt(delivery: Delivery): Promise<void> {
    const { store, log } = this.options;
    const { id, runId, host, event, attempts } = delivery;
    const outcome = this.#outcomeOf(delivery, await this.#send(delivery));
    const { state, error, status } = outcome;
    this.options.onPosted({ event, outcome: state === "pending" ? "retried" : state });
    if (state === "failed")
      log.warn({ runId, host, event, attempts, status, error }, "a webhook could not be delivered");
    try {
      await store.settleDelivery(id, attempts, outcome);
    } catch (cause) {
      // It stays reserved for a while, and is sent again.
      log.warn({ runId, error: messageOf(cause) }, "the outcome of a webhook could not be stored");
    }
  }

  async #send(delivery: Delivery): Promise<WebhookResponse> {
    const { sender, sealing, log } = this.options;
    const { id, body, project, runId } = delivery;
    let url: URL;
    try {
      url = urlOf(delivery, sealing);
    } catch (error) {
      const hint = "do all replicas have the same interactions.keyFile?";
      log.error({ runId, error: messageOf(error) }, `a webhook's address can't be read: ${hint}`);
      return { delivered: false, error: "its address can't be read by this server" };
    }
    try {
      const late = AbortSignal.timeout(sender.timeoutMs + graceMs);
      const sending = sender.send({ id, url, body, project }, this.#closing.signal);
      return await unlessAborted(late, () => sending);
    } catch (error) {
      log.error({ runId, error: messageOf(error) }, "a webhook could not be sent");
      return { delivered: false, error: "it could not be sent; the runner's log has the cause" };
    }
  }

  #outcomeOf(delivery: Delivery, response: WebhookResponse): DeliveryOutcome {
    const attempts = delivery.attempts - delivery.earlierAttempts;
    const { delivered, status, error, isFinal = false, retryAfterMs = 0 } = response;
    const seen = { status, error };
    if (delivered) return { state: "delivered", ...seen };
    const { sender } = this.options;
    if (isFinal || attempts >= sender.attempts) return { state: "failed", ...seen };
    const pauseMs = Math.min(sender.retryMs * growth ** (attempts - 1), maxPauseMs);
    // Up to a tenth more, so that what failed together doesn't come again together.
    const retryInMs = Math.round(
      Math.max(pauseMs, Math.min(retryAfterMs, maxPauseMs)) * (1 + Math.random() / 10),
    );
    return { state: "pending", retryInMs, ...seen };
  }
}

/** The names that occur so often, or more. */
function namesOver(names: readonly string[], max: number): readonly string[] {
  return [...new Set(names)].filter((name) => names.filter((other) => other === name).length >= max);
}
