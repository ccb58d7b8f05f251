import type { QuestionState } from "@ambit/core/plugin";
import type { UserAnswer } from "./answer.js";

/** A question that some run issued, which its id proves. */
export interface QuestionName {
  readonly project: string | undefined;
  readonly id: string;
}

/** What became of a call: its result, as its agent got it. */
export interface KnownOutcome {
  readonly output: string;
  readonly isError: boolean;
  /** The user refused. */
  readonly denied?: true | undefined;
  /** Data for the user interface, not for the model. */
  readonly data?: unknown;
}

/** What a ledger has of a question. */
export interface LedgerEntry {
  readonly id: string;
  readonly state: QuestionState;
  /** Undefined where it isn't remembered. */
  readonly kind?: string | undefined;
  /** Whether the outcome of its call is kept, because no model may have seen it. */
  readonly hasOutcome: boolean;
}

/** What is kept of a question: the answer until it is used, then perhaps the outcome. */
export type LedgerContent = { readonly answer: UserAnswer } | { readonly outcome: KnownOutcome };

/**
 * Where users' answers are kept until the outcome of their calls is known. Its states and steps are those of
 * `advanceQuestion`. One that is shared keeps them beyond this process, for all runners that share conversations.
 */
export interface AnswerLedger {
  /** Undefined for a question that it doesn't have. @throws StoreFailed */
  find(question: QuestionName): Promise<LedgerEntry | undefined>;
  /**
   * Of a conversation, oldest first: the open questions, the answers that wait for their calls, and the outcomes that wait for
   * their models. @throws StoreFailed
   */
  waiting(conversation: { readonly project: string | undefined; readonly session: string }): Promise<{
    readonly entries: readonly LedgerEntry[];
    /** Questions whose calls were made, without a known outcome. */
    readonly unknown: readonly string[];
    /** The `traceparent` of the run that asked last. */
    readonly trace?: string | undefined;
  }>;
  /** Undefined where it can't be read. @throws StoreFailed */
  read(question: QuestionName): Promise<LedgerContent | undefined>;
  /** Keeps an answer to an open question. Without room for it, it isn't kept. Never rejects. */
  keep(question: QuestionName, answer: UserAnswer): Promise<void>;
  /** A run is about to use the answer. False if it was used before, or if that isn't known. Never rejects. */
  claim(question: QuestionName, run: string): Promise<boolean>;
  /** What became of an answer that the run has claimed. Never rejects. */
  settle(question: QuestionName, run: string, settlement: Settlement): Promise<void>;
  /** Nothing of this question will be needed: its outcome was seen, or another question about the same call was answered. Never rejects. */
  drop(question: QuestionName): Promise<void>;
  /**
   * The agent took this open question back. Does nothing where the ledger learns that from the run's `interaction_expired`.
   * Never rejects.
   */
  withdraw(question: QuestionName): Promise<void>;
}

export type Settlement =
  | { readonly step: "spend"; readonly outcome?: KnownOutcome | undefined }
  | { readonly step: "return" | "lose" };

/** Characters of an outcome that is kept; a longer one isn't. */
export const maxOutcomeCharacters = 262_144;
