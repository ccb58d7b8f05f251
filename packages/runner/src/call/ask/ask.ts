import { type KeyObject, randomBytes } from "node:crypto";
import { type AcceptedPlan, NotFound } from "@ambit/core";
import { type InteractionPayload, projectOf, type RunRequest, type Warning } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../../events/run-events.js";
import { Deadlines } from "../../lifetime/deadlines.js";
import { LinkedAbort } from "../../lifetime/linked-abort.js";
import { Pause } from "../../lifetime/pause.js";
import type { OwnedScope } from "../../lifetime/scope.js";
import { tokens } from "../../tokens.js";
import { CallEvents } from "../reports/call-events.js";
import { Calls } from "../reports/calls.js";
import { type InteractionKind, readAnswer, type UserAnswer } from "../values/answer.js";
import type { Question } from "./question.js";
import { QuestionIds } from "./question-ids.js";
import { RequestAnswers } from "./request-answers.js";
import { UsedAnswers } from "./used-answers.js";

/** A question that waits for a live answer. */
interface Open {
  readonly kind: InteractionKind;
  readonly settle: (answer: UserAnswer) => void;
}

/** What a run asks its user: about its calls, the agent's own forms, its budget. Each question is answered once. */
@injectable()
export class Ask {
  /** Names this run in the ids that it issues; the result names it as the session, where the request names none. */
  readonly turn = randomBytes(16).toString("hex");
  readonly #open = new Map<string, Open>();
  /** Milliseconds that a question may wait for a live answer; 0: it doesn't wait. */
  readonly #waitMs: number;
  #stored: RequestAnswers | undefined;
  #ids: Promise<QuestionIds> | undefined;

  constructor(
    @inject(tokens.request) private readonly request: RunRequest,
    @inject(tokens.plan) plan: AcceptedPlan,
    @inject(tokens.interactionKey) private readonly key: () => Promise<KeyObject>,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(UsedAnswers) private readonly used: UsedAnswers,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(Pause) private readonly pause: Pause,
    @inject(Calls) private readonly calls: Calls,
    @inject(CallEvents) private readonly callEvents: CallEvents,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {
    this.#waitMs = Math.min(request.interactions?.waitMs ?? 0, plan.harness.actor.maxToolCallMs);
  }

  /** Reads the answers that the request brings. @returns a warning for each that doesn't count. */
  async readStored(): Promise<readonly Warning[]> {
    const { sessionId: session } = this.request;
    const project = projectOf(this.request);
    const given = session === undefined ? undefined : await this.used.keeper?.given({ project, session });
    const { answers, warnings } = await RequestAnswers.of(this.request, this.#issuer, this.#use, given);
    this.#stored = answers;
    if (given?.trace !== undefined && answers.hasAny) this.events.resumed(given.trace);
    return warnings;
  }

  /**
   * The answer's value: stored by an earlier request, or live. Undefined if there is none in time: the run then pauses
   * for it.
   * @param signal aborts when this question has become pointless.
   */
  async ask<Value>(question: Question<Value>, signal?: AbortSignal): Promise<Value | undefined> {
    const { call, kind } = question;
    using waiting = new LinkedAbort(this.scope.signal, this.pause.signal, ...(signal ? [signal] : []));
    const stored = await this.#answers.take(question);
    if (stored !== undefined && call !== undefined) {
      await this.callEvents.reported(call, waiting.signal);
      this.callEvents.announce(call);
    }
    const answered = stored ?? (await this.#askNow(question, waiting.signal));
    if (answered === undefined) {
      this.pause.begin();
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
    return value;
  }

  /**
   * Asks although the turn pauses for another question already: the user can answer both at once. Doesn't ask if there is
   * an answer: it is for the call that the agent repeats in its next turn.
   * @returns whether it was asked.
   */
  async alsoAsk(question: Question<unknown>): Promise<boolean> {
    if (this.#answers.holds(question)) return false;
    await this.#askNow(question, this.pause.signal);
    return true;
  }

  /**
   * A live answer.
   * @throws NotFound when the question isn't open: never asked, answered already, or given up.
   * @throws RequestInvalid when the answer doesn't fit the question; it stays open.
   */
  answer(id: string, body: unknown): void {
    const open = this.#open.get(id);
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
    const conversation = { project: projectOf(this.request), session: this.request.sessionId };
    this.#ids ??= this.key().then((key) => new QuestionIds(key, conversation, this.turn));
    return this.#ids;
  };

  readonly #use = (id: string): Promise<boolean> => this.used.use(projectOf(this.request), id);

  async #askNow(question: Question<unknown>, signal: AbortSignal) {
    const { call, kind, details, input } = question;
    const id = (await this.#issuer()).issue(question);
    if (call !== undefined) {
      await this.callEvents.reported(call, signal);
      this.callEvents.announce(call, id);
      this.calls.step(call.id, { step: "ask" });
    }
    const answer = await this.#liveAnswer(id, kind, { ...details, ...namesOf(question, id), input }, signal);
    if (call !== undefined) this.calls.step(call.id, { step: answer === undefined ? "park" : "answer" });
    if (answer === undefined) return undefined;
    // It has been used for this question. If later messages repeat it, it answers no other one.
    await this.#use(id);
    return { id, answer };
  }

  async #liveAnswer(
    id: string,
    kind: InteractionKind,
    payload: InteractionPayload,
    signal: AbortSignal,
  ): Promise<UserAnswer | undefined> {
    const isHeld = this.#waitMs > 0 && !signal.aborted;
    const expiresAt = isHeld ? { expiresAt: new Date(Date.now() + this.#waitMs).toISOString() } : {};
    this.events.emit({ type: "interaction_request", id, kind, payload: { ...payload, ...expiresAt } });
    if (!isHeld) return undefined;
    const release = this.deadlines.hold();
    using waiting = new LinkedAbort(signal);
    waiting.after(this.#waitMs, () => new Error("there was no answer in time"));
    try {
      return await new Promise<UserAnswer | undefined>((resolve) => {
        this.#open.set(id, { kind, settle: resolve });
        waiting.signal.addEventListener("abort", () => resolve(undefined), { once: true });
      });
    } finally {
      this.#open.delete(id);
      release();
    }
  }
}

function namesOf(
  { name, origin }: Pick<Question<unknown>, "name" | "origin">,
  toolCallId: string,
): InteractionPayload {
  return { toolCallId, toolName: name, ...(typeof origin === "string" ? {} : { server: origin.server }) };
}
