/** A user's answer: what it says, where it is kept, how it is used once, and the calls that it decided on. */

import { RequestInvalid } from "@ambit/core";
import {
  type AgentEventOf,
  type Issue,
  interactionAnswerSchema,
  knownShapeOf,
  readableIssues,
} from "@ambit/core/contract";
import { advanceQuestion, type QuestionState, type QuestionStep } from "@ambit/core/plugin";
import type { z } from "zod";
import { FairMap } from "../lifetime/fair-shares.js";

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

/**
 * `completed`: the agent ended its turn itself · `stopped`: its user did · `cut_short`: it lost what its calls came to, and may
 * make them again in its next turn.
 */
export type TurnEnding = "completed" | "stopped" | "cut_short";

/**
 * The calls of a run that its user has decided on. Of a tool that the agent executes itself, its answer is claimed until the
 * agent reports the result. Of any other, the outcome is kept until a model has seen it: an agent whose turn pauses may drop
 * what it got, and make the call again.
 */
export class ApprovedCalls {
  /** The answers to calls that the agent executes, by `Call.id`. */
  readonly #byAgent = new Map<string, AnswerUse>();
  /** The answers to calls that the runner executes. */
  readonly #executing = new Set<AnswerUse>();
  /** The answers whose outcomes no model of this turn has seen. */
  readonly #unseen = new Set<AnswerUse>();
  readonly #seen = new Set<AnswerUse>();
  readonly #spending: Promise<void>[] = [];

  /** The agent executes it itself. */
  begun(id: string, use: AnswerUse): void {
    this.#byAgent.set(id, use);
  }

  /** The runner executes a call, or hands its user's output to the agent. */
  executing(use: AnswerUse): void {
    this.#executing.add(use);
  }

  /** The call has a result. */
  ended(id: string): void {
    const use = this.#byAgent.get(id);
    this.#byAgent.delete(id);
    if (use !== undefined) this.#spending.push(use.spend());
  }

  /** The agent gets, or could get, this outcome. */
  keep(use: AnswerUse): void {
    this.#executing.delete(use);
    this.#unseen.add(use);
  }

  /** A request to the model begins: it has what the agent got until now. */
  modelAsked(): void {
    for (const use of this.#unseen) this.#seen.add(use);
    this.#unseen.clear();
  }

  async end(ending: TurnEnding): Promise<void> {
    const open = [...this.#byAgent.values()];
    const stopped = [...this.#executing];
    const done = ending === "cut_short" ? [...this.#seen] : [...this.#seen, ...this.#unseen];
    this.#byAgent.clear();
    this.#executing.clear();
    this.#seen.clear();
    this.#unseen.clear();
    await Promise.all([
      ...this.#spending.splice(0),
      ...stopped.map((use) => use.lose()),
      ...open.map((use) => (ending === "completed" ? use.spend() : use.lose())),
      ...done.map((use) => use.forget()),
    ]);
  }
}

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
