import { advanceQuestion, type QuestionState, type QuestionStep } from "@ambit/core/plugin";
import { FairMap } from "../../lifetime/memory/fair-map.js";
import {
  type AnswerLedger,
  type KnownOutcome,
  type LedgerContent,
  type LedgerEntry,
  maxOutcomeCharacters,
  type QuestionName,
  type Settlement,
  type UserAnswer,
} from "../values/answer.js";

/** Characters that are counted for a question besides its outcome. */
const entrySize = 256;
/** Characters that are remembered, of all projects: 65,536 questions. Each one required an answer from a user. */
const maxCharacters = 65_536 * entrySize;

interface Remembered {
  readonly state: QuestionState;
  readonly run?: string;
  readonly outcome?: KnownOutcome | undefined;
}

/**
 * The ledger of a runner whose answers aren't kept elsewhere. Requests bring the answers; this remembers, while the process
 * runs, what became of them. What is forgotten first is the oldest of the project that has the most.
 */
export class RememberedAnswers implements AnswerLedger {
  readonly #entries = new FairMap<Remembered>(maxCharacters);

  async find({ project, id }: QuestionName): Promise<LedgerEntry | undefined> {
    const entry = this.#entries.get(project, id);
    return entry && { id, state: entry.state, hasOutcome: entry.outcome !== undefined };
  }

  async waiting() {
    return { entries: [], unknown: [] };
  }

  async read({ project, id }: QuestionName): Promise<LedgerContent | undefined> {
    const outcome = this.#entries.get(project, id)?.outcome;
    return outcome && { outcome };
  }

  async keep(question: QuestionName, _answer: UserAnswer): Promise<void> {
    this.#advance(question, "answer");
  }

  async claim(question: QuestionName, run: string): Promise<boolean> {
    return this.#advance(question, "claim", { run });
  }

  async settle(question: QuestionName, run: string, settlement: Settlement): Promise<void> {
    if (this.#entries.get(question.project, question.id)?.run !== run) return;
    const { step } = settlement;
    this.#advance(question, step, step === "spend" ? { outcome: settlement.outcome } : {});
  }

  async drop(question: QuestionName): Promise<void> {
    this.#advance(question, "drop");
  }

  async withdraw(question: QuestionName): Promise<void> {
    this.#advance(question, "withdraw");
  }

  #advance(
    { project, id }: QuestionName,
    step: QuestionStep,
    { run, outcome }: Omit<Remembered, "state"> = {},
  ): boolean {
    const state = advanceQuestion(this.#entries.get(project, id)?.state ?? "open", step);
    if (state === undefined) return false;
    const length = outcome === undefined ? 0 : outcome.output.length;
    const rememberedOutcome = length > maxOutcomeCharacters ? undefined : outcome;
    this.#entries.set(
      project,
      id,
      { state, ...(run === undefined ? {} : { run }), outcome: rememberedOutcome },
      entrySize + (rememberedOutcome === undefined ? 0 : length),
    );
    return true;
  }
}

/** The ledger of all runs of a runner. */
export class RunnersLedger {
  /** Replaced where answers are kept beyond this process. */
  ledger: AnswerLedger = new RememberedAnswers();
}
