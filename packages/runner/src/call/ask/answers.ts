import {
  type ContentBlock,
  interactionKindSchema,
  type Message,
  type RunRequest,
  type Warning,
} from "@ambit/core/contract";
import { canonicalJson } from "../../canonical-json.js";
import { isUnsettled } from "../unsettled.js";
import { type Answer, approvalIn, readAnswer } from "./answer.js";
import { type AskedCall, type CallIds, type IssuedId, looksIssued } from "./call-ids.js";
import type { AnswerKeeper, UseAnswer } from "./used-answers.js";

/** An answer, with the id of the call that it was given to. */
export interface Answered {
  readonly id: string;
  readonly answer: Answer;
}

interface Stored extends Answered {
  readonly issued: IssuedId;
}

/** Answers of one request that are read. */
const maxAnswers = 1_000;

/**
 * The answers that a request's messages bring. Only what a runner with this key asked for counts, whatever the messages
 * contain: the agent reports calls and results of its own, and clients send those back together with the user's answers.
 */
export class Answers {
  readonly #waiting: Stored[];

  private constructor(
    readonly ids: CallIds | undefined,
    readonly use: UseAnswer,
    waiting: readonly Stored[],
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
    idsOf: () => Promise<CallIds>,
    use: UseAnswer,
    given: Awaited<ReturnType<AnswerKeeper["given"]>> = { newest: undefined, answers: [] },
  ): Promise<{ readonly answers: Answers; readonly warnings: readonly Warning[] }> {
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
      return { answers: new Answers(undefined, use, []), warnings: [] };
    const ids = await idsOf();
    const warnings: Warning[] = [];
    const found: Stored[] = [];
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
    return { answers: new Answers(ids, use, agreed([...current, ...kept])), warnings };
  }

  /** Whether there may be an answer to a question about just this call. */
  holds(call: AskedCall): boolean {
    if (this.ids === undefined || this.#waiting.length === 0) return false;
    const digest = this.ids.digest(call);
    return this.#waiting.some(({ issued }) => issued.call === digest);
  }

  /** The oldest answer to a question about just this call, once. */
  async take(call: AskedCall): Promise<Answered | undefined> {
    if (this.ids === undefined || this.#waiting.length === 0) return undefined;
    const digest = this.ids.digest(call);
    for (;;) {
      const index = this.#waiting.findIndex(
        ({ issued, answer }) =>
          issued.call === digest && (call.kind !== "user_approval" || approvalIn(answer) !== undefined),
      );
      const [stored] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (stored === undefined) return undefined;
      if (await this.use(stored.id)) return { id: stored.id, answer: stored.answer };
    }
  }
}

/**
 * The answers to the latest questions.
 * @param ids of the conversation, by any of its turns.
 */
export function keptAnswers(
  { newest, answers }: Awaited<ReturnType<AnswerKeeper["given"]>>,
  ids: Pick<CallIds, "read">,
): Stored[] {
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

function answerOf({ output, text, isError }: ContentBlock): Answer {
  return { output: output ?? text, isError: isError === true };
}

/** One answer for each question: of two that contradict each other, neither counts. */
function agreed(stored: readonly Stored[]): Stored[] {
  const byId = new Map<string, Stored | undefined>();
  for (const one of stored) {
    const other = byId.get(one.id);
    const isFirst = !byId.has(one.id);
    const agrees = other !== undefined && canonicalJson(other.answer) === canonicalJson(one.answer);
    byId.set(one.id, isFirst ? one : agrees ? other : undefined);
  }
  return [...byId.values()].filter((one) => one !== undefined);
}
