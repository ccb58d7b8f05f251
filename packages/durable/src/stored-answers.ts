import { AtCapacity, messageOf } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import { z } from "zod";
import { retryWhileDown } from "./outage.js";
import type { Sealing } from "./sealing.js";
import type { StoreSettings } from "./settings.js";
import type {
  InteractionQuery,
  InteractionState,
  Store,
  StoredInteraction,
  StoredSettlement,
} from "./store.js";
import type { Answerer } from "./wire.js";

/** Answers to questions of one session that are read, and characters that those to one run's have, as they are stored. */
const maxQuestions = 1_000;
const maxCharacters = 33_554_432;
/** Characters of a call's outcome; a longer one isn't kept. */
const maxOutcome = 262_144;

const outcomeSchema = z.object({
  output: z.string(),
  isError: z.boolean(),
  denied: z.literal(true).optional(),
  data: z.unknown().optional(),
});
type Outcome = z.infer<typeof outcomeSchema>;

/** What a user's answer says, as the runner reads it. */
interface Answer {
  readonly output: unknown;
  readonly isError: boolean;
}

interface Question {
  readonly id: string;
}

interface StoredAnswersOptions {
  readonly store: Store;
  readonly settings: StoreSettings;
  readonly sealing: Sealing;
  readonly log: Log;
}

/** Users' answers, stored until a turn on any replica has used each once; the runner's ledger. */
export class StoredAnswers {
  readonly #maxCharacters: number;

  /** @param answeringStore the store for a caller who waits for it. */
  constructor(
    readonly options: StoredAnswersOptions,
    readonly answeringStore: Pick<Store, "answer">,
  ) {
    this.#maxCharacters = Math.min(maxCharacters, options.settings.maxMiB * 1_048_576);
  }

  /**
   * Stores a caller's answer to an open question. @returns the state of one that isn't open; undefined if there is none.
   * @throws AtCapacity where the answers to its run's questions are larger than what the next turn may read
   */
  async answer(id: string, body: unknown): Promise<"kept" | InteractionState | undefined> {
    const sealed = this.options.sealing.seal(id, body);
    const question = await this.answeringStore.answer(id, sealed, this.#maxCharacters);
    if (question?.state === "open")
      throw new AtCapacity(
        "The answers to this run's questions take too much room: send a shorter one, or begin the next turn.",
      );
    return question?.state === "answered" && question.answer === sealed ? "kept" : question?.state;
  }

  /** Keeps who has answered a question. An answer counts without it, so that a store that is away costs no answer. */
  async nameAnswerer(id: string, answerer: Answerer): Promise<void> {
    await this.#attempt("name who answered", () =>
      this.options.store.nameAnswerer(id, JSON.stringify(answerer)),
    );
  }

  async find({ id }: Question) {
    const { interactionMs } = this.options.settings;
    const [question] = await this.#interactions({ id, limit: 1, without: ["payload"] });
    if (question === undefined || question.state !== "answered") return question && entryOf(question);
    const [recent] = await this.#interactions({
      id,
      maxAgeMs: interactionMs,
      limit: 1,
      without: ["payload"],
    });
    return entryOf(recent ?? { ...question, state: "expired" });
  }

  async waiting(conversation: { readonly project: string | undefined; readonly session: string }) {
    const { project = null, session } = conversation;
    const { interactionMs: maxAgeMs } = this.options.settings;
    const of = { project, session, maxAgeMs, limit: maxQuestions };
    const without = ["payload", "answer"] as const;
    // Read together: every run of a session waits for both.
    const [questions, unknown] = await Promise.all([
      this.#interactions({ ...of, holds: true, without }),
      this.#interactions({ ...of, state: "unknown", without }),
    ]);
    const newest = questions.find(({ state }) => state !== "open");
    return {
      entries: questions
        .map((question) => ({ ...entryOf(question), hasOutcome: question.state === "used" }))
        .reverse(),
      unknown: unknown.map(({ id }) => id),
      trace: newest === undefined ? undefined : await this.#traceOf(newest.runId),
    };
  }

  /** What is stored of an answer. Undefined also for an answer that was sealed with another key. */
  async read({ id }: Question) {
    const [question] = await this.#interactions({ id, holds: true, limit: 1, without: ["payload"] });
    const body = question?.answer === undefined ? undefined : this.unsealed(id, question.answer);
    if (question === undefined || body === undefined) return undefined;
    if (question.state === "answered") return { answer: answerOf(question.kind, body.value) };
    const outcome = outcomeSchema.safeParse(body.value);
    return outcome.success ? { outcome: outcome.data } : undefined;
  }

  /** Keeps an answer that came with a request's messages, or live. */
  async keep({ id }: Question, { output, isError }: Answer): Promise<void> {
    await this.#attempt("keep an answer", async () => {
      const [question] = await this.#interactions({ id, limit: 1, without: ["payload", "answer"] });
      if (question?.state !== "open") return;
      const body = question.kind === "user_approval" ? output : { output: output ?? null, isError };
      const sealed = this.options.sealing.seal(id, body);
      await this.options.store.answer(id, sealed, this.#maxCharacters);
    });
  }

  /** Claims an answer for a run. False if it was used before, or if the store can't be read: then the user is asked again. */
  async claim({ id }: Question, run: string): Promise<boolean> {
    const { store } = this.options;
    return (await this.#attempt("claim an answer", () => store.claimAnswer(id, run))) ?? false;
  }

  async settle(
    { id }: Question,
    run: string,
    settlement:
      | { readonly step: "spend"; readonly outcome?: Outcome | undefined }
      | { readonly step: "return" | "lose" },
  ): Promise<void> {
    const stored: StoredSettlement =
      settlement.step === "spend"
        ? { step: "spend", outcome: this.#sealed(id, settlement.outcome) }
        : settlement;
    const { store } = this.options;
    await this.#attempt("settle an answer", () => store.settleAnswer(id, run, stored));
  }

  async drop({ id }: Question): Promise<void> {
    await this.#attempt("drop an answer", () => this.options.store.dropAnswer(id));
  }

  /** The run's `interaction_expired` says it, in the same commit. */
  async withdraw(): Promise<void> {}

  /** An answer that was given on another replica. Undefined for one sealed with another key. */
  unsealed(id: string, answer: string): { readonly value: unknown } | undefined {
    try {
      return { value: this.options.sealing.unseal(id, answer) };
    } catch (error) {
      const hint = "do all replicas have the same interactions.keyFile?";
      this.options.log.error({ error: messageOf(error) }, `an answer can't be read: ${hint}`);
      return undefined;
    }
  }

  /** An outcome, sealed. Undefined for one that is too long to be kept. */
  #sealed(id: string, outcome: Outcome | undefined): string | undefined {
    if (outcome === undefined || outcome.output.length > maxOutcome) return undefined;
    const sealed = this.options.sealing.seal(id, outcome);
    return sealed.length > 2 * maxOutcome ? undefined : sealed;
  }

  /** @throws StoreFailed */
  #interactions(query: InteractionQuery): Promise<readonly StoredInteraction[]> {
    const { store, settings, log } = this.options;
    return retryWhileDown("read answers", settings.retryTimeoutMs, log, () => store.interactions(query));
  }

  /** The result of the step. Undefined where the store can't do it. */
  async #attempt<Result>(what: string, act: () => Promise<Result>): Promise<Result | undefined> {
    const { settings, log } = this.options;
    try {
      return await retryWhileDown(what, settings.retryTimeoutMs, log, act);
    } catch (error) {
      log.error({ error }, `the store could not ${what}`);
      return undefined;
    }
  }

  /** The trace of the run that asked. Undefined where it can't be read: no run fails for a link in its trace. */
  async #traceOf(runId: string): Promise<string | undefined> {
    const runs = await this.options.store.list({ id: runId, limit: 1 }).catch(() => []);
    return runs[0]?.trace;
  }
}

function entryOf({ id, state, kind, answer }: StoredInteraction) {
  return { id, state, kind, hasOutcome: state === "used" && answer !== undefined };
}

/** It was checked when its caller sent it. */
function answerOf(kind: string, body: unknown): Answer {
  if (kind === "user_approval") return { output: body, isError: false };
  const { output, isError = false } = z
    .object({ output: z.unknown(), isError: z.boolean().optional() })
    .parse(body);
  return { output, isError };
}
