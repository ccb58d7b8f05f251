import { messageOf } from "@ambit/core";
import { eventRecord, interactionKindSchema } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { textOf } from "./recorder.js";
import type { StoreSettings } from "./settings.js";
import type { Store, StoredInteraction } from "./store.js";
import { aboutExpiry } from "./webhooks.js";

/** Shortest and longest interval between two clean-ups, in milliseconds. */
const everyMs = { min: 1_000, max: 60_000 };
/** Milliseconds from the end of a run to the clean-up, where its store is in memory: a disk has room for a minute. */
const afterEndMs = 100;

/** Questions of one run that are read at a time, and characters of what any read questions hold. */
const maxQuestions = 100;
const maxCharacters = 8_388_608;

/** Has the result's number when the run ended. A reader that has the result continues with the next record. */
const ended = { type: "data", name: "ambit.run_ended", data: {} } as const;

/** Deletes what has ended and is too old, or too much, and ends questions that waited too long. */
export class Retaining {
  #timer: NodeJS.Timeout | undefined;
  #afterEnd: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;

  constructor(
    readonly options: {
      readonly store: Store;
      readonly settings: StoreSettings;
      readonly log: Log;
      /** False: the store is in memory. */
      readonly isShared: boolean;
    },
  ) {}

  start(): void {
    const { settings, isShared } = this.options;
    const maxPauseMs = isShared ? everyMs.max : everyMs.min;
    const pauseMs = Math.max(everyMs.min, Math.min(maxPauseMs, settings.maxAgeMs, settings.interactionMs));
    this.#timer = setInterval(() => this.#lookNow(), pauseMs);
    this.#timer.unref();
  }

  runEnded(): void {
    if (this.options.isShared || this.#isClosed) return;
    this.#afterEnd ??= setTimeout(() => {
      this.#afterEnd = undefined;
      this.#lookNow();
    }, afterEndMs).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#afterEnd);
    await this.#looking;
  }

  #lookNow(): void {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
  }

  async #look(): Promise<void> {
    const { store, settings, log, isShared } = this.options;
    try {
      await this.#expire();
      const { maxAgeMs, interactionMs, maxMiB } = settings;
      const limits = { maxAgeMs, interactionMs, maxSize: maxMiB * 1_048_576, isFair: !isShared };
      let { deleted, excess } = await store.retain(limits);
      // What is left waits for its users. The oldest of it ends first, with its event and webhook.
      while (excess > 0 && !this.#isClosed) {
        const [oldest] = await store.expiring(0, 1);
        if (oldest === undefined) {
          log.warn(
            { excess },
            "answers that no turn has used are deleted with their runs: the store is over its size",
          );
          deleted += (await store.retain({ ...limits, interactionMs: 0 })).deleted;
          break;
        }
        await this.#expireOf(oldest.runId);
        const retained = await store.retain(limits);
        deleted += retained.deleted;
        excess = retained.excess;
      }
      if (deleted > 0) log.info({ deleted }, "runs were deleted by age or size");
    } catch (error) {
      log.warn({ error: messageOf(error) }, "the store could not be cleaned");
    }
  }

  /** Page by page. */
  async #expire(): Promise<void> {
    const { store, settings } = this.options;
    while (!this.#isClosed) {
      const questions = await store.expiring(settings.interactionMs, maxCharacters);
      for (const question of questions) await this.#end(question);
      if (questions.length === 0) return;
    }
  }

  /** Ends the open questions of a run, before their time. */
  async #expireOf(runId: string): Promise<void> {
    while (!this.#isClosed) {
      const page = { runId, state: "open", limit: maxQuestions, maxCharacters, without: ["answer"] } as const;
      const questions = await this.options.store.interactions(page);
      let expired = 0;
      for (const question of questions) if (await this.#end(question)) expired += 1;
      if (expired === 0) return;
    }
  }

  /** A question gets its event and its webhook. False if another replica was first. */
  async #end(question: StoredInteraction): Promise<boolean> {
    const { store, log } = this.options;
    const { id, runId } = question;
    const run = await store.get(runId);
    if (run === undefined) return false;
    const kind = interactionKindSchema.parse(question.kind);
    const expiry = { type: "interaction_expired", id, kind } as const;
    const text = textOf([ended, expiry].map((event) => eventRecord(event, Date.now())));
    const expired = await store.expire(question, { text, deliveries: aboutExpiry(run, question) });
    if (expired) log.info({ runId, interactionId: id }, "a question has expired");
    return expired;
  }
}
