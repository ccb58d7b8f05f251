import { messageOf } from "@ambit/core";
import { eventRecord, interactionKindSchema } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import type { StoreSettings } from "./settings.js";
import type { Store } from "./store/index.js";
import { aboutExpiry } from "./webhooks/messages.js";

/** Shortest and longest interval between two clean-ups, in milliseconds. */
const everyMs = { min: 1_000, max: 60_000 };

/** The result's number when the run ended. A reader that has the result continues with the next record. */
const ended = eventRecord({ type: "data", name: "ambit.run_ended", data: {} });

/** Deletes what has ended and is too old, or too much, and ends questions that waited too long. */
export class Retaining {
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(
    readonly options: { readonly store: Store; readonly settings: StoreSettings; readonly log: Log },
  ) {}

  start(): void {
    const { maxAgeMs, interactionMs } = this.options.settings;
    const pauseMs = Math.max(everyMs.min, Math.min(everyMs.max, maxAgeMs, interactionMs));
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
    }, pauseMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { store, settings, log } = this.options;
    try {
      await this.#expire();
      const maxSize = settings.maxMiB * 1_048_576;
      const deleted = await store.retain({ maxAgeMs: settings.maxAgeMs, maxSize });
      if (deleted > 0) log.info({ deleted }, "runs were deleted by age or size");
    } catch (error) {
      log.warn({ error: messageOf(error) }, "the store could not be cleaned");
    }
  }

  /** Page by page: each question gets its event and its webhook. */
  async #expire(): Promise<void> {
    const { store, settings, log } = this.options;
    for (;;) {
      const questions = await store.expiring(settings.interactionMs);
      for (const question of questions) {
        const { id, runId } = question;
        const run = await store.get(runId);
        if (run === undefined) continue;
        const kind = interactionKindSchema.parse(question.kind);
        const expiry = eventRecord({ type: "interaction_expired", id, kind });
        const text = `${ended}\n${expiry}\n`;
        const expired = await store.expire(question, { text, deliveries: aboutExpiry(run, question) });
        if (expired) log.info({ runId, interactionId: id }, "a question has expired");
      }
      if (questions.length === 0) return;
    }
  }
}
