import { advanceQuestion, type QuestionState, type QuestionStep } from "@ambit/core/plugin";
import { MemoryLog, type MemoryRows } from "../log/memory-log.js";
import { RecentRecords } from "../log/recent-records.js";
import type { RecordGroup } from "../log/run-log.js";
import type {
  Expiry,
  NewInteraction,
  NewRun,
  RunEnd,
  RunHead,
  RunStateName,
  StoredInteraction,
  StoredRun,
  Written,
} from "../store/index.js";

/** Characters that are counted for a run besides its texts: many small runs fill memory too. */
const rowSize = 4_096;
/** The same for a question. */
const questionSize = 512;
/** Characters of one run's questions that are kept; beyond, the oldest aren't listed any more. */
const maxQuestionCharacters = 1_048_576;

/** Its run is kept. */
const waitingStates: ReadonlySet<QuestionState> = new Set(["open", "answered", "claimed"]);

type MemoryQuestion = { -readonly [Key in keyof StoredInteraction]: StoredInteraction[Key] };

/** One run in memory: what a store has as a row, with its log and questions. */
export class MemoryRun implements MemoryRows {
  state: RunStateName;
  replica: string;
  session: string | undefined;
  trace: string | undefined;
  sealedRequest: string | undefined;
  startedAt: number | undefined;
  endedAt: number | undefined;
  fence = 1;
  /** It paused, and a question is open, or its answer waits for the next turn. */
  isWaiting = false;
  readonly createdAt = Date.now();
  readonly recent: RecentRecords;
  readonly log: MemoryLog;
  readonly questions = new Map<string, MemoryQuestion>();
  #questionSize = 0;
  /** Characters of answers that wait for the session's next turn. */
  #answerSize = 0;

  constructor(
    readonly created: NewRun,
    /** Increases with each run. */
    readonly order: number,
    maxCharacters: number,
  ) {
    const { state, replica, session, announced, sealedRequest } = created;
    this.state = state;
    this.replica = replica;
    this.session = session;
    this.trace = created.trace;
    this.sealedRequest = sealedRequest;
    this.startedAt = state === "running" ? this.createdAt : undefined;
    this.recent = new RecentRecords(maxCharacters);
    this.log = new MemoryLog(created.id, this.recent);
    if (announced !== undefined) this.recent.add({ first: 1, ...announced });
  }

  get project(): string | undefined {
    return this.created.project;
  }

  /** Characters that it holds. */
  get size(): number {
    return (
      rowSize + this.recent.size + this.#questionSize + this.#answerSize + (this.sealedRequest?.length ?? 0)
    );
  }

  get head(): RunHead {
    return { id: this.created.id, state: this.state, fence: this.fence, events: this.recent.last };
  }

  /** @param withResult false in lists. */
  row(withResult: boolean): StoredRun {
    const { state, replica, session, trace, fence, createdAt, startedAt, endedAt, recent } = this;
    const { id, project, digest, harness, sandbox, webhook } = this.created;
    return {
      id,
      project,
      digest,
      harness,
      sandbox,
      webhook,
      trace,
      state,
      replica,
      session,
      fence,
      // Never stored: nobody ends a run of this process after it.
      sealedRecovery: undefined,
      createdAt,
      startedAt,
      endedAt,
      cancelRequested: false,
      events: recent.last,
      size: recent.written,
      result: withResult ? recent.end?.result : undefined,
    };
  }

  append({ count, text, asked = [], withdrawn = [] }: RecordGroup): Written {
    if (this.state !== "running") return "fenced";
    this.recent.add({ first: this.recent.last + 1, count, text });
    for (const question of asked) this.#ask(question);
    for (const id of withdrawn) this.advance(id, "withdraw");
    return "written";
  }

  finish({ result, session, paused }: RunEnd): Written {
    if (this.state === "ended") return "fenced";
    this.state = "ended";
    this.endedAt = Date.now();
    this.sealedRequest = undefined;
    for (const question of this.questions.values()) {
      // A question belongs to the session's next turn; a run without a session gets its name in the result.
      question.session ??= session;
      if (!paused && question.state === "open") question.state = "expired";
    }
    this.#look();
    this.recent.finish(result);
    return "written";
  }

  #look(): void {
    this.isWaiting =
      this.state === "ended" && [...this.questions.values()].some(({ state }) => waitingStates.has(state));
  }

  /** Keeps the answer to an open question. @returns the question as it is then; undefined if there is none. */
  answer(id: string, answer: string, maxCharacters: number): StoredInteraction | undefined {
    const question = this.questions.get(id);
    if (question === undefined) return undefined;
    if (question.state === "open" && this.#answerSize + answer.length <= maxCharacters) {
      question.state = "answered";
      question.answer = answer;
      this.#answerSize += answer.length;
    }
    return { ...question };
  }

  /** False where the step isn't possible. @param kept what is kept of it then. Default: nothing. */
  advance(id: string, step: QuestionStep, kept?: string): boolean {
    const question = this.questions.get(id);
    const state = question === undefined ? undefined : advanceQuestion(question.state, step);
    if (question === undefined || state === undefined) return false;
    const answer = step === "spend" || step === "lose" || step === "drop" ? kept : question.answer;
    this.#answerSize += (answer?.length ?? 0) - (question.answer?.length ?? 0);
    Object.assign(question, { state, answer });
    if (this.state === "ended") this.#look();
    return true;
  }

  /** Two records follow the result: the first takes its number, since readers count records. */
  expire(id: string, { text }: Expiry): boolean {
    const question = this.questions.get(id);
    if (question?.state !== "open") return false;
    question.state = "expired";
    this.#look();
    this.recent.add({ first: this.recent.last + 1, count: 2, text });
    return true;
  }

  /** Whether a question is open, or its answer waits for the next turn. */
  waits(interactionMs: number): boolean {
    const since = Date.now() - interactionMs;
    return [...this.questions.values()].some(
      ({ state, createdAt }) => state === "open" || (waitingStates.has(state) && createdAt >= since),
    );
  }

  #ask({ id, kind, payload }: NewInteraction): void {
    if (this.questions.has(id)) return;
    const { session, project } = this;
    const asked = { id, kind, payload, session, project, runId: this.created.id };
    this.questions.set(id, { ...asked, state: "open", answer: undefined, createdAt: Date.now() });
    this.#questionSize += questionSize + payload.length;
    for (const [oldest, question] of this.questions) {
      if (this.#questionSize <= maxQuestionCharacters || oldest === id) return;
      this.questions.delete(oldest);
      this.#questionSize -= questionSize + question.payload.length;
      this.#answerSize -= question.answer?.length ?? 0;
    }
  }
}
