/** The answers that wait for a conversation's calls, and the ids that prove what they answer. */

import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import {
  type ContentBlock,
  type InteractionPayload,
  type Message,
  projectOf,
  type RunRequest,
  type Warning,
} from "@ambit/core/contract";
import { canonicalJson } from "../json-values.js";
import { issuedPrefix, looksIssued } from "../parse/messages.js";
import {
  type AnswerLedger,
  approvalIn,
  type InteractionKind,
  type LedgerContent,
  type UserAnswer,
} from "./answer.js";
import { type Call, type CallSubject, comparable, isUnsettled } from "./call.js";

/** What a user is asked about. Two servers' tools of one name are two tools. */
export interface QuestionSubject extends Pick<CallSubject, "origin" | "name" | "input"> {
  readonly kind: InteractionKind;
}

/** A question of a run to its user. */
export interface Question<Value> extends QuestionSubject {
  /** The call that waits for the answer: it is announced before the question. Undefined: it isn't about a call. */
  readonly call?: Call;
  /** What the user reads of it besides name and input. */
  readonly details?: InteractionPayload | undefined;
  /** Aborts when the agent takes the question back. Default: never. */
  readonly withdrawn?: AbortSignal | undefined;
  /** What the answer means, and what its event says of it. */
  read(answer: UserAnswer): { readonly value: Value; readonly response: InteractionPayload };
}

/** The owner of a conversation. */
export interface ConversationName {
  readonly project: string | undefined;
  readonly session: string | undefined;
}

/** An id that a runner with this key issued for a question, parsed. */
interface IssuedId {
  /** Names the run that asked. */
  readonly turn: string;
  /** Names kind, tool and arguments; see `QuestionIds.digest`. */
  readonly call: string;
}

const sizes = { turn: 16, nonce: 5, call: 12, mac: 12 } as const;
const form = new RegExp(`^${issuedPrefix}[A-Za-z0-9_-]{60}$`);

/**
 * The ids under which calls that wait for a user are announced. Such an id proves, in any message that carries it back,
 * that a runner with this key asked about just that call in just that conversation; so resumption needs no state.
 *
 * 64 characters: `ask_`, then in base64url the turn (16 bytes), a nonce (5), a keyed digest of the call (12), and a MAC
 * over these three with project and session (12).
 */
export class QuestionIds {
  constructor(
    private readonly key: KeyObject,
    private readonly conversation: ConversationName,
    /** Names this run, 16 random bytes in hex. It is the session of a run that names none. */
    private readonly turn: string,
  ) {}

  issue(about: QuestionSubject): string {
    const turn = Buffer.from(this.turn, "hex");
    const body = Buffer.concat([
      turn,
      randomBytes(sizes.nonce),
      Buffer.from(this.digest(about), "base64url"),
    ]);
    return issuedPrefix + Buffer.concat([body, this.#mac(body)]).toString("base64url");
  }

  /** Undefined for what no runner with this key issued in this conversation. */
  read(id: string): IssuedId | undefined {
    if (!form.test(id)) return undefined;
    const bytes = Buffer.from(id.slice(issuedPrefix.length), "base64url");
    const body = bytes.subarray(0, -sizes.mac);
    if (!timingSafeEqual(bytes.subarray(-sizes.mac), this.#mac(body))) return undefined;
    return {
      turn: body.subarray(0, sizes.turn).toString("hex"),
      call: body.subarray(-sizes.call).toString("base64url"),
    };
  }

  /**
   * The same text for equal calls, regardless of the order of the arguments' keys. Keyed: it can't be computed
   * elsewhere.
   */
  digest({ kind, origin, name, input }: QuestionSubject): string {
    const call = canonicalJson([kind, origin, name, comparable(input)]);
    return this.#hmac("call", call).subarray(0, sizes.call).toString("base64url");
  }

  #mac(body: Buffer): Buffer {
    const { project, session = body.subarray(0, sizes.turn).toString("hex") } = this.conversation;
    const about = canonicalJson([project ?? null, session, body.toString("base64url")]);
    return this.#hmac("question", about).subarray(0, sizes.mac);
  }

  #hmac(purpose: string, text: string): Buffer {
    return createHmac("sha256", this.key).update(`${purpose}\0${text}`).digest();
  }
}

/** An answer of the request's messages, with the id of the question that it was given to. */
interface SentAnswer {
  readonly id: string;
  readonly answer: UserAnswer;
  readonly issued: IssuedId;
  /** The path of the block in the request. */
  readonly path: string;
}

interface Issued {
  readonly id: string;
  readonly issued: IssuedId;
}

/** What waits for a call: an answer, or what an earlier turn's call came to. */
interface Waiting extends Issued {
  readonly hasOutcome: boolean;
  read(): Promise<LedgerContent | undefined>;
}

/** What was taken for a call. */
type TakenContent = { readonly id: string } & LedgerContent;

/** Answers of one request that are read. */
const maxAnswers = 1_000;

/**
 * The answers that wait for calls of a conversation: those that its request's messages bring, and those that were kept. Only
 * what a runner with this key asked for counts, whatever the messages contain: the agent reports calls and results of its
 * own, and clients send those back together with the user's answers.
 */
export class RequestAnswers {
  readonly #waiting: Waiting[];
  /** Questions that have no answer yet. */
  readonly #open: Issued[];
  readonly #obsolete: string[] = [];

  private constructor(
    private readonly ids: QuestionIds | undefined,
    waiting: readonly Waiting[],
    /** Calls that were made in earlier turns, without a known outcome. */
    private readonly unknown: readonly IssuedId[],
    open: readonly Issued[],
  ) {
    this.#waiting = [...waiting];
    this.#open = [...open];
  }

  /**
   * @param idsOf gives the ids of this run; called only when there is something that could be an answer.
   * @returns the answers, and a warning for each that doesn't count.
   * @throws StoreFailed
   */
  static async of(
    request: Pick<RunRequest, "messages" | "customTools" | "sessionId" | "projectId" | "runContext">,
    idsOf: () => Promise<QuestionIds>,
    ledger: AnswerLedger,
  ): Promise<{
    readonly answers: RequestAnswers;
    readonly warnings: readonly Warning[];
    readonly trace?: string | undefined;
  }> {
    const project = projectOf(request);
    const { sessionId: session } = request;
    const placed = answerBlocks(request.messages);
    const clientTools = new Set(
      request.customTools.flatMap(({ name, kind }) => (kind === "client" ? [name] : [])),
    );
    const suspects = placed.filter(
      ({ block, name }) =>
        looksIssued(block.toolCallId ?? "") ||
        (isResult(block) && (approvalIn(answerOf(block)) !== undefined || clientTools.has(name ?? ""))),
    );
    const stored =
      session === undefined ? { entries: [], unknown: [] } : await ledger.waiting({ project, session });
    if (suspects.length + stored.entries.length + stored.unknown.length === 0)
      return { answers: new RequestAnswers(undefined, [], [], []), warnings: [] };
    const ids = await idsOf();
    const warnings: Warning[] = [];
    const sent: SentAnswer[] = [];
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
      else sent.push({ id, issued, answer, path });
    }
    const waiting = new Map<string, Waiting>();
    const unknown = stored.unknown.flatMap((id) => ids.read(id) ?? []);
    const entries = new Map(stored.entries.map((entry) => [entry.id, entry]));
    const dropped = new Set<string>();
    for (const { id, issued, answer, path } of agreed(sent)) {
      const question = { project, id };
      const entry = entries.get(id) ?? (await ledger.find(question));
      if (entry === undefined && issued.turn !== latest) continue;
      switch (entry?.state) {
        case "unknown":
          unknown.push(issued);
          continue;
        case "expired":
          warnings.push({ path, message: expired });
          continue;
        case "withdrawn":
          warnings.push({ path, message: withdrawn });
          continue;
        case "used":
          if (!entry.hasOutcome) continue;
          waiting.set(id, { id, issued, hasOutcome: true, read: () => ledger.read(question) });
          continue;
        case "claimed":
          continue;
        case "answered": {
          // Of two answers that contradict each other, neither counts.
          const other = await ledger.read(question);
          if (other !== undefined && !("answer" in other && agree(other.answer, answer))) dropped.add(id);
          break;
        }
        case "open":
        case undefined:
          await ledger.keep(question, answer);
      }
      waiting.set(id, { id, issued, hasOutcome: false, read: async () => ({ answer }) });
    }
    const open: Issued[] = [];
    for (const { id, hasOutcome, state } of stored.entries) {
      const issued = ids.read(id);
      if (issued === undefined || waiting.has(id)) continue;
      if (state === "open") {
        open.push({ id, issued });
        continue;
      }
      waiting.set(id, { id, issued, hasOutcome, read: () => ledger.read({ project, id }) });
    }
    const counting = [...waiting.values()].filter(({ id }) => !dropped.has(id));
    return { answers: new RequestAnswers(ids, counting, unknown, open), warnings, trace: stored.trace };
  }

  /** Whether something waits for a call. */
  get hasAny(): boolean {
    return this.#waiting.length > 0;
  }

  /** The outcomes that wait for their models. */
  get outcomes(): readonly string[] {
    return this.#waiting.flatMap(({ id, hasOutcome }) => (hasOutcome ? [id] : []));
  }

  /** Whether there may be an answer to just this question. */
  holds(subject: QuestionSubject): boolean {
    if (this.ids === undefined || this.#waiting.length === 0) return false;
    const digest = this.ids.digest(subject);
    return this.#waiting.some(({ issued }) => issued.call === digest);
  }

  /** Whether just this call was made in an earlier turn, without a known outcome. */
  isUnknown(subject: QuestionSubject): boolean {
    if (this.ids === undefined || this.unknown.length === 0) return false;
    const digest = this.ids.digest(subject);
    return this.unknown.some(({ call }) => call === digest);
  }

  /**
   * What waits for just this question, once: an outcome, else the oldest answer of the turn that asked last. The questions of
   * other turns about the same call are obsolete then: they must not allow a second one.
   * @throws StoreFailed
   */
  async take(subject: QuestionSubject): Promise<TakenContent | undefined> {
    if (this.ids === undefined || this.#waiting.length === 0) return undefined;
    const digest = this.ids.digest(subject);
    for (;;) {
      const matching = this.#waiting.filter(({ issued }) => issued.call === digest);
      const turn = matching.at(-1)?.issued.turn;
      const first =
        matching.find(({ hasOutcome }) => hasOutcome) ?? matching.find(({ issued }) => issued.turn === turn);
      if (first === undefined) return undefined;
      this.#waiting.splice(this.#waiting.indexOf(first), 1);
      const content = await first.read();
      if (content === undefined) continue;
      const fits =
        "outcome" in content || subject.kind !== "user_approval" || approvalIn(content.answer) !== undefined;
      if (!fits) continue;
      this.supersede(first.issued);
      return { id: first.id, ...content };
    }
  }

  /** Ids of questions that became obsolete since this was called last. */
  obsolete(): readonly string[] {
    return this.#obsolete.splice(0);
  }

  /** A question about this call was answered: what other turns asked about it is obsolete. */
  supersede({ turn, call }: IssuedId): void {
    const isOther = ({ issued }: { readonly issued: IssuedId }) =>
      issued.call === call && issued.turn !== turn;
    const waiting = this.#waiting.filter((answer) => isOther(answer) && !answer.hasOutcome);
    for (const answer of waiting) this.#waiting.splice(this.#waiting.indexOf(answer), 1);
    const open = this.#open.filter(isOther);
    for (const question of open) this.#open.splice(this.#open.indexOf(question), 1);
    this.#obsolete.push(...[...waiting, ...open].map(({ id }) => id));
  }
}

/** Whether an answer waits for the session's next turn. @throws StoreFailed */
export async function hasStoredAnswer(
  request: RunRequest,
  ledger: AnswerLedger,
  key: () => Promise<KeyObject>,
): Promise<boolean> {
  const { sessionId: session } = request;
  if (session === undefined) return false;
  const conversation = { project: projectOf(request), session };
  const { entries } = await ledger.waiting(conversation);
  const answered = entries.filter(({ state }) => state === "answered");
  if (answered.length === 0) return false;
  // Nothing is issued: these only read the ids of earlier turns.
  const ids = new QuestionIds(await key(), conversation, "");
  return answered.some(({ id }) => ids.read(id) !== undefined);
}

const expired = "doesn't count as an answer: its question has expired. Begin the next turn, which asks again";

const withdrawn =
  "doesn't count as an answer: the agent has withdrawn its question. The agent asks again if it still needs an answer";

const unasked =
  "doesn't count as an answer: its toolCallId isn't one under which this runner asked in this session. Send the id of the tool_call event, as payload.toolCallId of the interaction_request names it";

interface Placed {
  readonly block: ContentBlock;
  /** The path of the block in the request. */
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
function agreed(sent: readonly SentAnswer[]): SentAnswer[] {
  const byId = new Map<string, SentAnswer | undefined>();
  for (const answer of sent) {
    const earlier = byId.get(answer.id);
    const agrees = earlier !== undefined && agree(earlier.answer, answer.answer);
    byId.set(answer.id, !byId.has(answer.id) ? answer : agrees ? earlier : undefined);
  }
  return [...byId.values()].filter((answer) => answer !== undefined);
}

function agree(one: UserAnswer, other: UserAnswer): boolean {
  return canonicalJson(one) === canonicalJson(other);
}
