import { FairMap } from "../../lifetime/memory/fair-map.js";

/** Ids that are remembered, of all projects. Each one required an answer from a user. */
const maxRemembered = 65_536;

/** An answer that was given between two turns to a question of the earlier turn. */
export interface GivenAnswer {
  /** Of the question. */
  readonly id: string;
  readonly kind: string;
  /** As the user sent it. */
  readonly body: unknown;
}

/** Marks an answer of one project as used. False when it was used before. */
export type UseAnswer = (id: string) => Promise<boolean>;

/** Keeps answers beyond this process, for all runners that share conversations. */
export interface AnswerKeeper {
  /** Marks an answer as used. False if any runner used it before, or if that isn't known. */
  use(id: string): Promise<boolean>;
  /** For a conversation: the id of its latest question, and the answers that wait to be used. */
  given(conversation: { readonly project: string | undefined; readonly session: string }): Promise<{
    readonly newest: string | undefined;
    /** The `traceparent` of the run that asked it. */
    readonly trace?: string | undefined;
    readonly answers: readonly GivenAnswer[];
  }>;
}

/**
 * The used answers: messages contain the same answer in every later request, and it allows one call only. Without a
 * keeper they are remembered on this runner while it runs. The oldest are forgotten first, of the project
 * that has the most: such an answer precedes a later turn.
 */
export class UsedAnswers {
  readonly #ids = new FairMap<true>(maxRemembered);
  /** Set where answers are kept beyond this process. */
  keeper: AnswerKeeper | undefined;

  /** False when it was used before. */
  async use(project: string | undefined, id: string): Promise<boolean> {
    if (this.#ids.get(project, id) === true) return false;
    this.#ids.set(project, id, true);
    return this.keeper?.use(id) ?? true;
  }
}
