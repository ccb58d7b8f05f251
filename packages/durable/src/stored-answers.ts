import { AtCapacity, messageOf } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import { retryWhileDown } from "./outage.js";
import type { Sealing } from "./sealing.js";
import type { StoreSettings } from "./settings.js";
import type { InteractionQuery, InteractionState, Store, StoredInteraction } from "./store/index.js";

/** Answers to questions of one run that are read, and characters that they have together, as they are stored. */
const maxQuestions = 1_000;
const maxCharacters = 33_554_432;

export interface StoredAnswersOptions {
  readonly store: Store;
  readonly settings: StoreSettings;
  readonly sealing: Sealing;
  readonly log: Log;
}

/** Users' answers, stored until a turn on any replica uses them once. */
export class StoredAnswers {
  /** @param asked the store for a caller who waits for it. */
  constructor(
    readonly options: StoredAnswersOptions,
    readonly asked: Pick<Store, "answer">,
  ) {}

  /**
   * Stores an answer to an open question. @returns the state of one that isn't open; undefined if there is none.
   * @throws AtCapacity where the answers to its run's questions are larger than what the next turn may read
   */
  async keep(id: string, body: unknown): Promise<"kept" | InteractionState | undefined> {
    const sealed = await this.options.sealing.sealInTurns(id, body);
    const question = await this.asked.answer(id, sealed, maxCharacters);
    if (question?.state === "open")
      throw new AtCapacity(
        "The answers to this run's questions take too much room: send a shorter one, or begin the next turn.",
      );
    return question?.state === "answered" && question.answer === sealed ? "kept" : question?.state;
  }

  /** False if it was used before, or if the store can't be read: then the user is asked again. */
  async use(id: string): Promise<boolean> {
    const { store, settings, log } = this.options;
    try {
      return await retryWhileDown("mark an answer as used", settings.retryTimeoutMs, log, () =>
        store.useAnswer(id),
      );
    } catch (error) {
      log.error({ error }, "an answer is left out: the store can't say whether it was used");
      return false;
    }
  }

  async given(conversation: { readonly project: string | undefined; readonly session: string }) {
    const { store, settings, log } = this.options;
    const { project = null, session } = conversation;
    const read = (query: Omit<InteractionQuery, "project" | "session">) =>
      retryWhileDown("read answers", settings.retryTimeoutMs, log, () =>
        store.interactions({ project, session, ...query }),
      );
    const [newest] = await read({ limit: 1, without: ["payload", "answer"] });
    if (newest === undefined) return { newest: undefined, answers: [] };
    const { runId } = newest;
    // Answers to the questions of an earlier run don't count any more.
    const answered = await read({ runId, state: "answered", limit: maxQuestions, without: ["payload"] });
    const answers: { id: string; kind: StoredInteraction["kind"]; body: unknown }[] = [];
    for (const question of answered) {
      const body = await this.#unsealed(question);
      if (body !== undefined) answers.push({ id: question.id, kind: question.kind, body: body.value });
    }
    return {
      newest: newest.id,
      trace: answered.length === 0 ? undefined : await this.#traceOf(runId),
      answers,
    };
  }

  /** Of the run that asked. Undefined where it can't be read: no run fails for a link in its trace. */
  async #traceOf(runId: string): Promise<string | undefined> {
    const runs = await this.options.store.list({ id: runId, limit: 1 }).catch(() => []);
    return runs[0]?.trace;
  }

  /** An answer that was given on another replica. Undefined for one sealed with another key. */
  async unsealed(id: string, answer: string): Promise<{ readonly value: unknown } | undefined> {
    try {
      return { value: await this.options.sealing.unsealInTurns(id, answer) };
    } catch (error) {
      const hint = "do all replicas have the same interactions.keyFile?";
      this.options.log.error({ error: messageOf(error) }, `an answer can't be read: ${hint}`);
      return undefined;
    }
  }

  async #unsealed({ id, answer }: StoredInteraction) {
    return answer === undefined ? undefined : await this.unsealed(id, answer);
  }
}
