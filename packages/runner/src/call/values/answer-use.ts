import type { AnswerLedger, KnownOutcome, QuestionName } from "./answer-ledger.js";

/** One run's use of one answer, or of the outcome that an earlier turn of its conversation got for it. */
export class AnswerUse {
  #isClaimed = false;
  #hasOutcome: boolean;

  constructor(
    private readonly question: QuestionName,
    private readonly run: string,
    private readonly ledger: Pick<AnswerLedger, "claim" | "settle" | "drop">,
    hasOutcome = false,
  ) {
    this.#hasOutcome = hasOutcome;
  }

  get id(): string {
    return this.question.id;
  }

  /** Whether its call is under way. */
  get isClaimed(): boolean {
    return this.#isClaimed;
  }

  /** Called immediately before the call is made. False if the answer was used before: it doesn't count. */
  async claim(): Promise<boolean> {
    this.#isClaimed = await this.ledger.claim(this.question, this.run);
    return this.#isClaimed;
  }

  /** The call was executed, denied or failed. @param outcome is kept until a model has seen it. */
  async spend(outcome?: KnownOutcome): Promise<void> {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    this.#hasOutcome = outcome !== undefined;
    await this.ledger.settle(this.question, this.run, { step: "spend", outcome });
  }

  /** The call wasn't made: the answer counts for the next one. */
  giveBack(): Promise<void> {
    return this.#settle("return");
  }

  /** The call was made, and its outcome can't be known. */
  lose(): Promise<void> {
    return this.#settle("lose");
  }

  /** The outcome won't be needed again. */
  async forget(): Promise<void> {
    if (!this.#hasOutcome) return;
    this.#hasOutcome = false;
    await this.ledger.drop(this.question);
  }

  async #settle(step: "return" | "lose"): Promise<void> {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    await this.ledger.settle(this.question, this.run, { step });
  }
}
