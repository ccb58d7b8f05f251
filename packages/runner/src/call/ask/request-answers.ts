import type { KeyObject } from "node:crypto";
import {
  type ContentBlock,
  interactionKindSchema,
  type Message,
  projectOf,
  type RunRequest,
  type Warning,
} from "@ambit/core/contract";
import { canonicalJson } from "../../canonical-json.js";
import { approvalIn, readAnswer, type UserAnswer } from "../values/answer.js";
import { looksIssued } from "../values/issued-id.js";
import { isUnsettled } from "../values/unsettled.js";
import type { QuestionSubject } from "./question.js";
import { type IssuedId, QuestionIds } from "./question-ids.js";
import type { AnswerKeeper, UseAnswer } from "./used-answers.js";

/** An answer, with the id of the question that it was given to. */
interface StoredAnswer {
  readonly id: string;
  readonly answer: UserAnswer;
  readonly issued: IssuedId;
}

/** Answers of one request that are read. */
const maxAnswers = 1_000;

/**
 * The answers that a request's messages bring. Only what a runner with this key asked for counts, whatever the messages
 * contain: the agent reports calls and results of its own, and clients send those back together with the user's answers.
 */
export class RequestAnswers {
  readonly #waiting: StoredAnswer[];

  private constructor(
    private readonly ids: QuestionIds | undefined,
    private readonly use: UseAnswer,
    waiting: readonly StoredAnswer[],
  ) {
    this.#waiting = [...waiting];
  }

  /**
   * @param idsOf gives the ids of this run; called only when there is something that could be an answer.
   * @param given answers that weren't sent in messages.
   * @returns the answers, and a warning for each that doesn't count.
   */
  static async of(
    request: Pick<RunRequest, "messages" | "customTools">,
    idsOf: () => Promise<QuestionIds>,
    use: UseAnswer,
    given: Awaited<ReturnType<AnswerKeeper["given"]>> = { newest: undefined, answers: [] },
  ): Promise<{ readonly answers: RequestAnswers; readonly warnings: readonly Warning[] }> {
    const placed = answerBlocks(request.messages);
    const clientTools = new Set(
      request.customTools.flatMap(({ name, kind }) => (kind === "client" ? [name] : [])),
    );
    const suspects = placed.filter(
      ({ block, name }) =>
        looksIssued(block.toolCallId ?? "") ||
        (isResult(block) && (approvalIn(answerOf(block)) !== undefined || clientTools.has(name ?? ""))),
    );
    if (suspects.length + given.answers.length === 0)
      return { answers: new RequestAnswers(undefined, use, []), warnings: [] };
    const ids = await idsOf();
    const warnings: Warning[] = [];
    const found: StoredAnswer[] = [];
    let latest: string | undefined;
    for (const { block, path } of suspects.slice(-maxAnswers)) {
      const { toolCallId: id } = block;
      const issued = id === undefined ? undefined : ids.read(id);
      latest = issued?.turn ?? latest;
      if (!isResult(block)) continue;
      const answer = answerOf(block);
      // What the runner itself sent in place of a result is no answer.
      if (isUnsettled(answer.output)) continue;
      if (id === undefined || issued === undefined) warnings.push({ path, message: unasked });
      else found.push({ id, issued, answer });
    }
    // A run pauses when it asks, so its next question makes the earlier ones obsolete.
    const current = found.filter(({ issued }) => issued.turn === latest);
    const kept = keptAnswers(given, ids);
    return { answers: new RequestAnswers(ids, use, agreed([...current, ...kept])), warnings };
  }

  /** Whether answers wait to be used. */
  get hasAny(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether there may be an answer to just this question. */
  holds(subject: QuestionSubject): boolean {
    if (this.ids === undefined || this.#waiting.length === 0) return false;
    const digest = this.ids.digest(subject);
    return this.#waiting.some(({ issued }) => issued.call === digest);
  }

  /** The oldest answer to just this question, once. */
  async take(subject: QuestionSubject): Promise<StoredAnswer | undefined> {
    if (this.ids === undefined || this.#waiting.length === 0) return undefined;
    const digest = this.ids.digest(subject);
    for (;;) {
      const index = this.#waiting.findIndex(
        ({ issued, answer }) =>
          issued.call === digest && (subject.kind !== "user_approval" || approvalIn(answer) !== undefined),
      );
      const [stored] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (stored === undefined) return undefined;
      if (await this.use(stored.id)) return stored;
    }
  }
}

/**
 * Whether an answer to the session's latest question waits for its next turn.
 * @param keeper undefined: answers aren't kept here. @throws StoreFailed
 */
export async function hasStoredAnswer(
  request: RunRequest,
  keeper: AnswerKeeper | undefined,
  key: () => Promise<KeyObject>,
): Promise<boolean> {
  const { sessionId: session } = request;
  if (session === undefined || keeper === undefined) return false;
  const conversation = { project: projectOf(request), session };
  const given = await keeper.given(conversation);
  if (given.answers.length === 0) return false;
  // Nothing is issued: these only read the ids of earlier turns.
  const ids = new QuestionIds(await key(), conversation, "");
  return keptAnswers(given, ids).length > 0;
}

/**
 * The answers to the latest questions.
 * @param ids of the conversation, by any of its turns.
 */
function keptAnswers(
  { newest, answers }: Awaited<ReturnType<AnswerKeeper["given"]>>,
  ids: Pick<QuestionIds, "read">,
): StoredAnswer[] {
  const latest = newest === undefined ? undefined : ids.read(newest)?.turn;
  return answers.flatMap(({ id, kind, body }) => {
    const issued = ids.read(id);
    const known = interactionKindSchema.safeParse(kind);
    if (issued === undefined || issued.turn !== latest || !known.success) return [];
    return [{ id, issued, answer: readAnswer(known.data, body) }];
  });
}

const unasked =
  "doesn't count as an answer: its toolCallId isn't one under which this runner asked in this session. Send the id of the tool_call event, as payload.toolCallId of the interaction_request names it";

interface Placed {
  readonly block: ContentBlock;
  /** Of the block in the request. */
  readonly path: string;
  /** The tool's, where the messages have it. */
  readonly name: string | undefined;
}

/**
 * Calls and results that may belong to the latest questions: those after the user's last text, in a message of any
 * role, and those after the assistant's last message, even next to new text of the user.
 */
function answerBlocks(messages: readonly Message[]): Placed[] {
  const words = messages.findLastIndex(({ role, content }) => role === "user" && !holdsResults(content));
  const assistants = messages.findLastIndex(({ role }) => role === "assistant");
  const first = Math.min(words, assistants) + 1;
  const names = new Map<string, string>();
  const placed: Placed[] = [];
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string") continue;
    for (const [position, block] of content.entries()) {
      const { type, toolCallId, toolName } = block;
      if (type === "tool_call" && toolCallId !== undefined && toolName !== undefined)
        names.set(toolCallId, toolName);
      if (index < first || (type !== "tool_call" && type !== "tool_result")) continue;
      const name = toolName ?? (toolCallId === undefined ? undefined : names.get(toolCallId));
      placed.push({ block, name, path: `messages[${index}].content[${position}]` });
    }
  }
  return placed;
}

function holdsResults(content: Message["content"]): boolean {
  return typeof content !== "string" && content.some(isResult);
}

function isResult({ type }: ContentBlock): boolean {
  return type === "tool_result";
}

function answerOf({ output, text, isError }: ContentBlock): UserAnswer {
  return { output: output ?? text, isError: isError === true };
}

/** One answer for each question: of two that contradict each other, neither counts. */
function agreed(stored: readonly StoredAnswer[]): StoredAnswer[] {
  const byId = new Map<string, StoredAnswer | undefined>();
  for (const one of stored) {
    const other = byId.get(one.id);
    const isFirst = !byId.has(one.id);
    const agrees = other !== undefined && canonicalJson(other.answer) === canonicalJson(one.answer);
    byId.set(one.id, isFirst ? one : agrees ? other : undefined);
  }
  return [...byId.values()].filter((one) => one !== undefined);
}
