/** Ids that are remembered. Each took an answer of a user. */
const mostRemembered = 65_536;

/** An answer that was given between two turns, to a question of the earlier one. */
export interface GivenAnswer {
  /** Of the question. */
  readonly id: string;
  readonly kind: string;
  /** As the user sent it. */
  readonly body: unknown;
}

/** Keeps answers beyond this process, for all runners that share conversations. */
export interface AnswerKeeper {
  /** Marks an answer as used. False when it was used before, by whichever runner, or when that isn't known. */
  use(id: string): Promise<boolean>;
  /** Of a conversation: the id of the question that was asked last, and the answers that wait to be used. */
  given(conversation: {
    readonly project: string | undefined;
    readonly session: string;
  }): Promise<{ readonly newest: string | undefined; readonly answers: readonly GivenAnswer[] }>;
}

/**
 * Which answers were used: messages bring the same answer again with every request, and it allows one call. Without a
 * keeper, on this runner, for as long as it runs; the oldest are forgotten first: an answer so old stands before a later
 * turn.
 */
export class UsedAnswers {
  readonly #ids = new Set<string>();
  /** Set where answers are kept beyond this process. */
  keeper: AnswerKeeper | undefined;

  /** False when it was used before. */
  async use(id: string): Promise<boolean> {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > mostRemembered && oldest !== undefined) this.#ids.delete(oldest);
    return this.keeper?.use(id) ?? true;
  }
}
