import { randomBytes } from "node:crypto";
import { InteractionExpired, NotFound } from "@ambit/core";
import { type InteractionPayload, projectOf, type Warning } from "@ambit/core/contract";
import type { InputAnswer, InputQuestion } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { z } from "zod";
import { RunEvents } from "../events/run-events.js";
import { aborted, Deadlines, LinkedAbort, type OwnedScope, Pause, settlesWithin } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import {
  type AnswerLedger,
  AnswerUse,
  ApprovedCalls,
  type InteractionKind,
  type KnownOutcome,
  RunnersLedger,
  readAnswer,
  type UserAnswer,
} from "./answer.js";
import { Calls } from "./call.js";
import { CallEvents } from "./call-events.js";
import { type Question, QuestionIds, RequestAnswers } from "./request-answers.js";

/** A question that waits for a live answer. */
interface Open {
  readonly kind: InteractionKind;
  readonly settle: (answer: UserAnswer) => void;
}

/** What a question came to. */
type Asked<Value> =
  | { readonly value: Value; readonly answer: UserAnswer; readonly use: AnswerUse }
  /** Its call was made in an earlier turn of the conversation, and no model has seen what it came to. */
  | { readonly outcome: KnownOutcome }
  /** The agent took it back. */
  | "withdrawn";

/** Further questions that may follow the one that a turn pauses for. */
const maxLateQuestions = 32;

/** What a run asks its user: about its calls, the agent's own forms, its budget. Each question is answered once. */
@injectable()
export class Ask {
  /** Names this run in the ids that it issues; the result names it as the session, where the request names none. */
  readonly turn = randomBytes(16).toString("hex");
  readonly #open = new Map<string, Open>();
  readonly #withdrawn = new Set<string>();
  /** Milliseconds that a question may wait for a live answer; 0: it doesn't wait. */
  readonly #waitMs: number;
  /** Milliseconds that the agent's calls may wait for a pause to take effect. */
  readonly #settleMs: number;
  readonly #settling: Settling;
  #askedLate = 0;
  #stored: RequestAnswers | undefined;
  #ids: Promise<QuestionIds> | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.services) private readonly services: RunnerServices,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.limits) limits: Pick<RunLimits, "pauseMs">,
    @inject(RunnersLedger) private readonly shared: RunnersLedger,
    @inject(ApprovedCalls) private readonly approved: ApprovedCalls,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(Pause) private readonly pause: Pause,
    @inject(Calls) private readonly calls: Calls,
    @inject(CallEvents) private readonly callEvents: CallEvents,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {
    const { request, plan } = run;
    const { maxToolCallMs } = plan.harness.actor;
    this.#settleMs = Math.min(limits.pauseMs, maxToolCallMs / 2);
    this.#waitMs = Math.min(request.interactions?.waitMs ?? 0, maxToolCallMs - this.#settleMs);
    this.#settling = new Settling(limits, scope, calls, pause);
  }

  /** Reads the answers that wait. @returns a warning for each that doesn't count. @throws StoreFailed */
  async readStored(): Promise<readonly Warning[]> {
    const { answers, warnings, trace } = await RequestAnswers.of(this.run.request, this.#issuer, this.ledger);
    this.#stored = answers;
    if (trace !== undefined && answers.hasAny) this.events.observation.resumed(trace);
    for (const id of answers.outcomes) this.approved.keep(this.#useOf(id, true));
    return warnings;
  }

  /**
   * What the user says: in an answer that waits, or live. Undefined if there is no answer in time: the run pauses for it, and
   * the pause is in effect. An answer counts once it is claimed.
   * @param signal aborts when this question has become pointless.
   * @throws StoreFailed
   */
  async ask<Value>(question: Question<Value>, signal?: AbortSignal): Promise<Asked<Value> | undefined> {
    const { call, kind } = question;
    if (this.pause.isInEffect && this.#answers.holds(question)) return undefined;
    using waiting = new LinkedAbort(this.scope.signal, this.pause.begun, ...(signal ? [signal] : []));
    using announcing = new LinkedAbort(this.scope.signal, this.pause.effect, ...(signal ? [signal] : []));
    const taken = this.pause.isInEffect ? undefined : await this.#answers.take(question);
    await this.#endObsolete();
    if (taken !== undefined && call !== undefined) {
      await this.callEvents.reported(call, announcing.signal);
      this.callEvents.announce(call, { resumes: taken.id });
    }
    if (taken !== undefined && "outcome" in taken) return { outcome: taken.outcome };
    const answered = taken ?? (await this.#askNow(question, waiting.signal, announcing.signal));
    if (answered === "withdrawn") return answered;
    if (answered === undefined) {
      await this.#settling.paused(this.#settleMs);
      return undefined;
    }
    const { value, response } = question.read(answered.answer);
    const names =
      call === undefined
        ? { toolName: question.name }
        : namesOf(question, this.callEvents.publicIdOf(call.id));
    this.events.emit({
      type: "interaction_response",
      id: answered.id,
      kind,
      payload: { ...names, ...response },
    });
    return { value, answer: answered.answer, use: this.#useOf(answered.id, false) };
  }

  /**
   * The value of an answer that has its whole effect here. Undefined: the run pauses for it. `withdrawn`: the agent took the
   * question back.
   * @param isRepeated whether an agent whose turn is cut short asks the same again, and gets the same answer. Default: false.
   * @throws StoreFailed
   */
  async askOnce<Value>(
    question: Question<Value>,
    isRepeated = false,
  ): Promise<Value | "withdrawn" | undefined> {
    for (;;) {
      const reply = await this.ask(question);
      if (reply === undefined || reply === "withdrawn") return reply;
      if ("outcome" in reply) {
        const { output, isError, data } = reply.outcome;
        return question.read({ output: data ?? output, isError }).value;
      }
      if (!(await reply.use.claim())) continue;
      const { output: data, isError } = reply.answer;
      await reply.use.spend(isRepeated ? { output: "", isError, data } : undefined);
      if (isRepeated) this.approved.keep(reply.use);
      return reply.value;
    }
  }

  /**
   * A live answer.
   * @throws NotFound when the question isn't open: never asked, answered already, or given up.
   * @throws InteractionExpired when the agent has withdrawn it.
   * @throws RequestInvalid when the answer doesn't fit the question; it stays open.
   */
  answer(id: string, body: unknown): void {
    const open = this.#open.get(id);
    if (this.#withdrawn.has(id)) throw new InteractionExpired(id, "withdrawn");
    if (open === undefined) {
      throw new NotFound(`There is no open interaction '${id}': it was answered, given up, or never asked.`);
    }
    const answer = readAnswer(open.kind, body);
    this.#open.delete(id);
    open.settle(answer);
  }

  get #answers(): RequestAnswers {
    if (this.#stored === undefined) throw new Error("The run's stored answers aren't read yet.");
    return this.#stored;
  }

  readonly #issuer = (): Promise<QuestionIds> => {
    const conversation = { project: projectOf(this.run.request), session: this.run.request.sessionId };
    this.#ids ??= this.services.interactionKey().then((key) => new QuestionIds(key, conversation, this.turn));
    return this.#ids;
  };

  get ledger(): AnswerLedger {
    return this.shared.ledger;
  }

  #useOf(id: string, hasOutcome: boolean): AnswerUse {
    const question = { project: projectOf(this.run.request), id };
    return new AnswerUse(question, this.run.key, this.ledger, hasOutcome);
  }

  /** An answer to one of these can't allow a second call. */
  async #endObsolete(): Promise<void> {
    const project = projectOf(this.run.request);
    for (const id of this.#answers.obsolete()) await this.ledger.drop({ project, id });
  }

  /** @param announcing aborts when it is too late to wait for the agent's report of the call. */
  async #askNow(question: Question<unknown>, waiting: AbortSignal, announcing: AbortSignal) {
    const { call, kind, details, input, withdrawn } = question;
    if (this.pause.isPaused) {
      if (this.scope.signal.aborted || this.#askedLate >= maxLateQuestions) return undefined;
      this.#askedLate += 1;
    }
    const id = (await this.#issuer()).issue(question);
    if (call !== undefined) {
      await this.callEvents.reported(call, announcing);
      this.callEvents.announce(call, { asks: id });
      this.calls.step(call.id, { step: "ask" });
    }
    const isUnknown = this.#answers.isUnknown(question);
    const earlier = isUnknown ? { earlierOutcome: "unknown" as const } : {};
    if (isUnknown) this.events.warn({ path: "", message: mayHaveRun(question.name) });
    const parent = call === undefined ? {} : this.callEvents.parentOf(call.id);
    const payload = { ...details, ...namesOf(question, id), ...parent, input, ...earlier };
    const answer = await this.#liveAnswer(id, kind, payload, waiting, withdrawn);
    if (answer === "withdrawn") {
      await this.#withdraw(id, kind);
      if (call !== undefined) this.calls.step(call.id, { step: "answer" });
      return answer;
    }
    // A live answer waits like any other from now on: it isn't lost if its call isn't made.
    if (answer !== undefined) {
      await this.ledger.keep({ project: projectOf(this.run.request), id }, answer);
      const ids = await this.#issuer();
      this.#answers.supersede({ turn: this.turn, call: ids.digest(question) });
      await this.#endObsolete();
    }
    if (call !== undefined) this.calls.step(call.id, { step: answer === undefined ? "park" : "answer" });
    return answer === undefined ? undefined : { id, answer };
  }

  /** Ends a question that the agent took back. An answer that comes until the event is stored is refused, too. */
  async #withdraw(id: string, kind: InteractionKind): Promise<void> {
    this.#withdrawn.add(id);
    this.events.emit({ type: "interaction_expired", id, kind });
    await this.ledger.withdraw({ project: projectOf(this.run.request), id });
  }

  /** @param withdrawn counts while the question is held: that of a pausing turn belongs to the session's next one. */
  async #liveAnswer(
    id: string,
    kind: InteractionKind,
    payload: InteractionPayload,
    signal: AbortSignal,
    withdrawn: AbortSignal | undefined,
  ): Promise<UserAnswer | "withdrawn" | undefined> {
    const isHeld = this.#waitMs > 0 && !signal.aborted;
    const expiresAt = isHeld ? { expiresAt: new Date(Date.now() + this.#waitMs).toISOString() } : {};
    this.events.emit({ type: "interaction_request", id, kind, payload: { ...payload, ...expiresAt } });
    if (!isHeld) return undefined;
    const release = this.deadlines.hold();
    using waiting = new LinkedAbort(signal);
    using takenBack = new LinkedAbort(...(withdrawn ? [withdrawn] : []));
    waiting.after(this.#waitMs, () => new Error("there was no answer in time"));
    try {
      return await new Promise<UserAnswer | "withdrawn" | undefined>((resolve) => {
        this.#open.set(id, { kind, settle: resolve });
        waiting.signal.addEventListener("abort", () => resolve(undefined), { once: true });
        takenBack.signal.addEventListener("abort", () => resolve("withdrawn"), { once: true });
        if (takenBack.signal.aborted) resolve("withdrawn");
      });
    } finally {
      this.#open.delete(id);
      release();
    }
  }
}

function mayHaveRun(name: string): string {
  return `The call of '${name}' that is asked about again was allowed before, and may have run: its run ended before the outcome was known. The earlier answer doesn't count.`;
}

function namesOf(
  { name, origin }: Pick<Question<unknown>, "name" | "origin">,
  toolCallId: string,
): InteractionPayload {
  return { toolCallId, toolName: name, ...(typeof origin === "string" ? {} : { server: origin.server }) };
}

/** Milliseconds without a change after which no parallel call is on its way any more. */
const quietMs = 100;
/** Milliseconds in which a call that the agent reported, or may make, reaches the runner: a busy machine is slow. */
const arrivalMs = 1_000;

/** Lets the calls that are allowed finish before a pause takes effect. */
class Settling {
  #settling: Promise<void> | undefined;

  constructor(
    private readonly limits: Pick<RunLimits, "pauseMs">,
    private readonly scope: OwnedScope,
    private readonly calls: Calls,
    private readonly pause: Pause,
  ) {}

  /** Begins to pause. Resolves when the pause is in effect, or the run is over. @param maxMs that a call may wait for that. */
  paused(maxMs: number): Promise<void> {
    this.pause.begin();
    this.#settling ??= this.#settle(Math.min(this.limits.pauseMs, maxMs));
    return this.#settling;
  }

  async #settle(maxMs: number): Promise<void> {
    const begunAt = performance.now();
    using limit = new LinkedAbort(this.scope.signal, this.pause.effect);
    limit.after(maxMs, () => new Error("the calls took too long"));
    while (!limit.signal.aborted) {
      const changed = Promise.race([this.calls.changed(), aborted(limit.signal)]);
      const { isExecuting, isComing } = this.calls.progress;
      if (isExecuting) {
        await changed;
        continue;
      }
      const sinceMs = performance.now() - begunAt;
      const waitMs = isComing && sinceMs < arrivalMs ? arrivalMs - sinceMs : quietMs;
      if (!(await settlesWithin(changed, Math.min(waitMs, maxMs)))) break;
    }
    this.pause.takeEffect();
  }
}

/** Questions of one run: more are declined. */
const maxQuestions = 64;

/** A form's values, as ACP and MCP have them: flat. */
const contentSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
);

/** Forms and pages that an agent asks its user to fill in or visit. */
export class Elicitation {
  #questionCount = 0;

  constructor(
    private readonly ask: Ask,
    private readonly pause: Pause,
  ) {}

  /** `park`: the run pauses for the answer. @param withdrawn aborts when the agent takes its question back. */
  async answer({ message, form, url }: InputQuestion, withdrawn?: AbortSignal): Promise<InputAnswer> {
    if (this.pause.isInEffect) return "park";
    if (this.#questionCount >= maxQuestions) return { action: "decline" };
    this.#questionCount += 1;
    const question: Question<Exclude<InputAnswer, "park">> = {
      kind: "user_input",
      origin: "agent",
      // What the user sees in place of a tool's name.
      name: "elicitation",
      input: { message, form, url },
      withdrawn,
      read: (answer) => {
        const value = accepted(answer, form !== undefined);
        return { value, response: { action: value.action } };
      },
    };
    const answer = await this.ask.askOnce(question, true);
    return answer === "withdrawn" ? { action: "decline" } : (answer ?? "park");
  }
}

/** Only an object of flat values is a form's answer. Anything else, and an error, declines. */
function accepted({ output, isError }: UserAnswer, isForm: boolean): Exclude<InputAnswer, "park"> {
  if (isError) return { action: "decline" };
  if (!isForm) return { action: "accept", content: {} };
  const content = contentSchema.safeParse(output);
  return content.success ? { action: "accept", content: content.data } : { action: "decline" };
}
