import { messageOf } from "@ambit/core";
import { type Log, unlessAborted, type WebhookAttempt } from "@ambit/core/plugin";
import type { Sealing } from "../sealing.js";
import type { Delivery, DeliveryOutcome, Store } from "../store/index.js";
import { urlOf } from "./messages.js";

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
  return [...new Set(names)].filter((name) => names.filter((one) => one === name).length >= max);
}
