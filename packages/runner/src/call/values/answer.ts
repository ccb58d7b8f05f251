import { RequestInvalid } from "@ambit/core";
import {
  type AgentEventOf,
  type Issue,
  interactionAnswerSchema,
  knownShapeOf,
  readableIssues,
} from "@ambit/core/contract";
import type { QuestionState } from "@ambit/core/plugin";
import type { z } from "zod";

export type InteractionKind = AgentEventOf<"interaction_request">["kind"];

/** The user's answer to a call that waits for it. */
export interface UserAnswer {
  readonly output: unknown;
  readonly isError: boolean;
}

const [approvalSchema, outputSchema] = interactionAnswerSchema.options;
const noApproval = {
  path: "approved",
  message: "must be true or false: this interaction asks for an approval",
};
const noOutput = { path: "output", message: "must hold the call's output: this interaction asks for it" };

/** Parses a user's answer. @throws RequestInvalid when it doesn't fit the question. */
export function readAnswer(kind: InteractionKind, body: unknown): UserAnswer {
  if (kind === "user_approval") {
    const approval = approvalSchema.safeParse(body);
    if (approval.success) return { output: approval.data, isError: false };
    throw misfit(approvalSchema, approval.error, body, noApproval);
  }
  const answer = outputSchema.safeParse(body);
  if (!answer.success) throw misfit(outputSchema, answer.error, body, noOutput);
  if (!("output" in answer.data)) throw new RequestInvalid([noOutput]);
  return { output: answer.data.output, isError: answer.data.isError };
}

/** Whether the user approved; undefined when the answer isn't about that. */
export function approvalIn({ output }: UserAnswer): boolean | undefined {
  if (typeof output !== "object" || output === null || !("approved" in output)) return undefined;
  return typeof output.approved === "boolean" ? output.approved : undefined;
}

/** What else is wrong is named too: an answer with one field too many isn't one without an approval. */
function misfit(schema: z.ZodType, error: z.ZodError, body: unknown, lacks: Issue): RequestInvalid {
  const issues = readableIssues(error.issues, { value: body, level: knownShapeOf(schema), path: [] });
  return new RequestInvalid(issues.map((issue) => (["", lacks.path].includes(issue.path) ? lacks : issue)));
}

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
