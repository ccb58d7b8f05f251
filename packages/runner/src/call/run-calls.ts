/** The way of every call: permission, arguments, execution, outcome; and who decides, when the agent asks and when it calls. */

import { asPluginError } from "@ambit/core";
import type { Denier, InteractionPayload, ToolSpec } from "@ambit/core/contract";
import type {
  PermissionDecision,
  PermissionQuestion,
  Publication,
  PublishedCall,
  PublishedOutcome,
  Sandbox,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import { canonicalJson } from "../json-values.js";
import { aborted, Deadlines, LinkedAbort, type OwnedScope, Pause } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { tokens } from "../tokens.js";
import {
  type AnswerUse,
  ApprovedCalls,
  approvalIn,
  type InteractionKind,
  type KnownOutcome,
  type TurnEnding,
  type UserAnswer,
} from "./answer.js";
import { unusableArguments } from "./arguments/checker.js";
import { Ask, Elicitation } from "./ask.js";
import { type Call, type CallSubject, Calls, comparable, subjectOf, unsettledTexts } from "./call.js";
import { CallEvents } from "./call-events.js";
import { CallPermissions } from "./permissions.js";
import type { Question } from "./request-answers.js";
import { type MadeCall, RunTools, tooManyCalls } from "./run-tools.js";

/** What became of a call. `parked`: it waits for the user. */
type CallResult = MadeCall | "parked";

/** Created once: `abort()` without a reason creates an error with its stack each time. */
const over = new Error("The run is over.");

/** Every tool call of a run: permission, then the arguments' schema, then the executor, then the outcome. */
@injectable()
export class RunCalls {
  readonly #over = new AbortController();
  /** Calls and questions without an answer yet. */
  #open = 0;
  #acted = false;
  #ending: TurnEnding = "stopped";
  readonly #gatekeeper: Gatekeeper;
  /** What the agent asks its user to fill in or visit. */
  readonly forms: Elicitation;

  constructor(
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(Calls) private readonly calls: Calls,
    @inject(CallEvents) private readonly callEvents: CallEvents,
    @inject(CallPermissions) private readonly permissions: CallPermissions,
    @inject(Ask) private readonly ask: Ask,
    @inject(ApprovedCalls) private readonly approved: ApprovedCalls,
    @inject(Pause) private readonly pause: Pause,
    @inject(RunTools) private readonly tools: RunTools,
  ) {
    this.#gatekeeper = new Gatekeeper(permissions, tools, ask, approved);
    this.forms = new Elicitation(ask, pause);
  }

  /** Whether the agent has called or asked for anything. */
  get acted(): boolean {
    return this.#acted;
  }

  /** Whether the turn waits for its user. */
  get isPaused(): boolean {
    return this.pause.isPaused;
  }

  /** Names the run in the ids of its questions; its session, where the request names none. */
  get turn(): string {
    return this.ask.turn;
  }

  /** Reads the answers that the request brings. @throws StoreFailed */
  async begin(): Promise<void> {
    for (const warning of await this.ask.readStored()) this.events.warn(warning);
  }

  /** From now on the agent's calls are this run's. @throws PluginBrokeContract */
  serve(router: CallRouter, published: Iterable<string>, sandbox: Sandbox): void {
    router.current = this;
    this.learn(published);
    this.tools.prepare(sandbox);
  }

  /** @throws PluginBrokeContract */
  learn(published: Iterable<string>): void {
    for (const warning of this.permissions.learn(published)) this.events.warn(warning);
  }

  /** The run is over: ends the calls that wait for the user, and settles the answers that it used. */
  async end(): Promise<void> {
    this.#over.abort(over);
    await this.approved.end(this.#ending);
  }

  turnEnded(ending: TurnEnding): void {
    this.#ending = ending;
  }

  /** A live answer to what the run asks its user. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void {
    this.ask.answer(interactionId, body);
  }

  /** A call of one of the request's own tools. */
  callTool(made: PublishedCall): Promise<PublishedOutcome> {
    return this.#guarded(`The executor of '${made.name}'`, made, async () => {
      const tool = this.tools.byName.get(made.name);
      if (tool === undefined) return failed(`There is no tool '${made.name}'.`);
      const call = this.#claim(made, { origin: "request", tool });
      const problem = (signal: AbortSignal) => this.tools.problem(tool, made.arguments, signal);
      return this.#permitted(call, made.signal, problem, () => this.#execute(call, made, tool));
    });
  }

  /**
   * A call of a user's MCP server: subject to the same permissions, regardless of what the server says about its tools.
   */
  callMcpTool(publication: Publication, made: PublishedCall): Promise<PublishedOutcome> {
    return this.#guarded(`The tool source of '${publication.name}'`, made, () => {
      const { name } = publication;
      const call = this.#claim(made, { origin: { server: name }, server: this.tools.servers.get(name) });
      return this.#permitted(call, made.signal, undefined, () =>
        this.tools.callMcpTool(call.id, publication, made),
      );
    });
  }

  /**
   * The agent asks before it calls one of the run's tools or its own.
   * @param withdrawn aborts when it takes the question back.
   */
  async decide(question: PermissionQuestion, withdrawn?: AbortSignal): Promise<PermissionDecision> {
    this.#acted = true;
    const { toolName, input } = question;
    if (this.#open >= this.limits.openCalls || unusableArguments(toolName, input) !== undefined)
      return this.isPaused ? "park" : "deny";
    const release = this.deadlines.hold();
    using asking = this.#asking();
    this.#open += 1;
    try {
      const call = this.calls.claim(
        question.toolCallId,
        subjectOf(question, this.tools.byName, this.tools.servers),
      );
      if (this.pause.isInEffect && this.permissions.effective(call) !== "ask") {
        this.calls.step(call.id, { step: "release" });
        return "park";
      }
      const decision = await this.#gatekeeper.beforeCall(call, asking.signal, withdrawn);
      if (decision.verdict !== "allow" && decision.verdict !== "deny") {
        this.calls.step(call.id, { step: "release" });
        return decision.verdict === "withdrawn" ? "deny" : "park";
      }
      const { verdict } = decision;
      this.calls.step(call.id, verdict === "allow" ? { step: "allow" } : { step: "deny", by: decision.by });
      this.#proceed(call);
      return verdict;
    } finally {
      this.#open -= 1;
      release();
    }
  }

  /** Denies first, so that a denied tool doesn't reveal its schema; asks last, so that the user isn't asked in vain. */
  async #permitted(
    call: Call,
    signal: AbortSignal,
    problem: ((signal: AbortSignal) => Promise<string | undefined>) | undefined,
    act: () => Promise<CallResult>,
  ): Promise<PublishedOutcome> {
    const { id } = call;
    using asking = this.#asking(signal);
    const permission = this.permissions.effective(call);
    const isOver = this.scope.signal.aborted || signal.aborted;
    // The turn is over: what the agent still calls isn't executed. Its user can decide on it for the next turn.
    if (isOver || (this.pause.isInEffect && permission !== "ask"))
      return this.#undecided(id, unsettledTexts.deferred);
    const wrong = permission === "deny" ? undefined : await problem?.(signal);
    if (wrong !== undefined)
      return this.#undecided(id, this.pause.isInEffect ? unsettledTexts.deferred : wrong);
    const decision = await this.#gatekeeper.atExecution(call, asking.signal);
    if (decision.verdict === "park" || decision.verdict === "withdrawn") return this.#wait(signal);
    this.#proceed(call);
    if (decision.verdict === "deny") {
      const outcome = failed(decision.why);
      this.calls.step(id, { step: "deny", by: decision.by, outcome });
      return outcome;
    }
    this.calls.step(id, { step: "execute" });
    const { use } = decision.verdict === "allow" ? decision : {};
    const result = decision.verdict === "made" ? resultOf(decision.outcome) : await this.#made(act, use);
    if (result === "parked") {
      // Its answer counts when the user has fulfilled the call.
      await use?.giveBack();
      return this.#wait(signal);
    }
    const { outcome, data, cut } = result;
    if (cut === "unsent") await use?.giveBack();
    else if (cut === "unknown") await use?.lose();
    else {
      await this.#spend(use, { ...outcome, data });
      this.calls.step(id, { step: "finish", outcome, data });
    }
    return outcome;
  }

  /** What is thrown says nothing about whether the call was made. */
  async #made(act: () => Promise<CallResult>, use: AnswerUse | undefined): Promise<CallResult> {
    try {
      return await act();
    } catch (error) {
      await use?.lose();
      throw error;
    }
  }

  /** The outcome is known. The agent may lose it, if its turn is cut short. */
  async #spend(use: AnswerUse | undefined, { output, isError, data }: KnownOutcome): Promise<void> {
    if (use === undefined) return;
    await use.spend({ output, isError, data });
    this.approved.keep(use);
  }

  /** A call never throws: a failure on our side ends the run, and the agent gets the call's failure. */
  async #guarded(
    who: string,
    made: PublishedCall,
    step: () => Promise<PublishedOutcome>,
  ): Promise<PublishedOutcome> {
    this.#acted = true;
    const unusable = unusableArguments(made.name, made.arguments);
    if (unusable !== undefined) return failed(unusable);
    if (this.#open >= this.limits.openCalls) return failed(tooManyCalls(made.name));
    const release = this.deadlines.hold();
    this.#open += 1;
    try {
      return await step();
    } catch (error) {
      this.scope.abort(asPluginError(who, error));
      return failed(`Tool '${made.name}' failed on the runner's side, and the run with it.`);
    } finally {
      this.#open -= 1;
      release();
    }
  }

  async #execute(call: Call, made: PublishedCall, tool: ToolSpec): Promise<CallResult> {
    const result = await this.tools.execute(call.id, tool, made);
    return "parkedFor" in result ? this.#fulfil(result.parkedFor, call, made.signal) : result;
  }

  async #fulfil(kind: InteractionKind, call: Call, signal: AbortSignal): Promise<CallResult> {
    using asking = this.#asking(signal);
    const fulfilled = await this.#gatekeeper.fulfilment(kind, call, asking.signal);
    if (fulfilled === undefined) return "parked";
    const { outcome, use } = fulfilled;
    // The agent has hung up: it gets the output in its next turn.
    if (signal.aborted) {
      await use?.giveBack();
      return { ...resultOf(outcome), cut: "unsent" };
    }
    await this.#spend(use, outcome);
    return resultOf(outcome);
  }

  /** Resolves when the run is over, since an earlier response would let the model continue without the user. */
  async #wait(signal: AbortSignal): Promise<PublishedOutcome> {
    using ended = new LinkedAbort(signal, this.#over.signal);
    await aborted(ended.signal);
    return { ...failed("This call waits for the user. It was not executed."), isLate: true };
  }

  #undecided(id: string, why: string): PublishedOutcome {
    this.calls.step(id, { step: "release" });
    return failed(why);
  }

  /** Its report needn't wait for a question any more, unless the user fulfils it. */
  #proceed({ id, tool }: Call): void {
    if (!this.tools.isByCaller(tool)) this.callEvents.proceed(id);
  }

  /** Aborts when asking has become pointless. */
  #asking(...call: readonly AbortSignal[]): LinkedAbort {
    return new LinkedAbort(this.scope.signal, this.pause.effect, ...call);
  }

  #claim(
    { id, name, arguments: input }: PublishedCall,
    about: Pick<CallSubject, "origin" | "tool" | "server">,
  ): Call {
    return this.calls.claim(id, { ...about, name, input });
  }
}

function resultOf({ output, isError, data }: KnownOutcome): MadeCall {
  return { outcome: { output, isError }, data };
}

function failed(output: string): PublishedOutcome {
  return { output, isError: true };
}

/**
 * Passes the calls of a published tool to the run that has the agent now. Between runs nothing is executed,
 * whatever a kept agent does.
 */
export class CallRouter {
  current: RunCalls | undefined;

  async route(step: (calls: RunCalls) => Promise<PublishedOutcome>): Promise<PublishedOutcome> {
    const { current } = this;
    if (current === undefined) return { output: "No run is active: nothing was executed.", isError: true };
    return step(current);
  }
}

type CallDecision =
  /** `use`: of the user's answer that allows it, which is claimed. */
  | { readonly verdict: "allow"; readonly use?: AnswerUse | undefined }
  | { readonly verdict: "deny"; readonly why: string; readonly by: Denier }
  /** It was made in an earlier turn, and no model has seen what it came to. */
  | { readonly verdict: "made"; readonly outcome: KnownOutcome }
  /** The agent took its question back. */
  | { readonly verdict: "withdrawn" }
  /** The run pauses for its user. */
  | { readonly verdict: "park" };

/** A decision before the call is made: the answer isn't claimed yet. */
type Consent = Exclude<CallDecision, { verdict: "deny" | "park" | "withdrawn" }>;

/**
 * Decides whether a call may be made: when the agent asks, and again where it is executed, since what a sandbox says
 * isn't trusted. A consent holds for one call with the same arguments.
 */
export class Gatekeeper {
  /** What the agent's questions came to, by call. The executions that follow use it. */
  readonly #consents = new Map<string, Consent[]>();

  constructor(
    private readonly permissions: Pick<CallPermissions, "effective" | "denial">,
    private readonly tools: Pick<RunTools, "details">,
    private readonly ask: Pick<Ask, "ask">,
    private readonly approved: ApprovedCalls,
  ) {}

  /** The agent asks before it calls. @param withdrawn aborts when it takes the question back. */
  async beforeCall(call: Call, signal: AbortSignal, withdrawn?: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const decision = await this.#decide(call, signal, withdrawn);
      if (decision.verdict !== "allow" && decision.verdict !== "made") return decision;
      if (call.origin === "agent") {
        // An outcome can't be handed to the agent, which executes the call itself: so none is kept of such a call.
        if (decision.verdict === "made" || !(await claimed(decision))) continue;
        if (decision.use !== undefined) this.approved.begun(call.id, decision.use);
      } else if (this.permissions.effective(call) === "ask") {
        const key = consentKey(call);
        this.#consents.set(key, [...(this.#consents.get(key) ?? []), decision]);
      }
      return { verdict: "allow" };
    }
  }

  /** A published tool is about to be executed. */
  async atExecution(call: Call, signal: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const consent = this.permissions.effective(call) === "ask" ? this.#useConsent(call) : undefined;
      const decision = consent ?? (await this.#decide(call, signal));
      if (decision.verdict !== "allow") return decision;
      if (!(await claimed(decision))) continue;
      if (decision.use !== undefined) this.approved.executing(decision.use);
      return decision;
    }
  }

  /** The user fulfils the call. Undefined: the run pauses for it. */
  async fulfilment(
    kind: InteractionKind,
    call: Call,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: KnownOutcome; readonly use?: AnswerUse } | undefined> {
    for (;;) {
      const reply = await this.ask.ask(
        this.#questionAbout(kind, call, (answer) => ({ value: outcomeOf(answer), response: {} })),
        signal,
      );
      if (reply === undefined || reply === "withdrawn") return undefined;
      if ("outcome" in reply) return { outcome: reply.outcome };
      if (await reply.use.claim()) return { outcome: reply.value, use: reply.use };
    }
  }

  async #decide(call: Call, signal: AbortSignal, withdrawn?: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const permission = this.permissions.effective(call);
      if (permission === "allow") return { verdict: "allow" };
      if (permission === "deny") return { verdict: "deny", ...this.permissions.denial(call) };
      const reply = await this.ask.ask({ ...this.#approvalOf(call), withdrawn }, signal);
      if (reply === undefined) return { verdict: "park" };
      if (reply === "withdrawn") return { verdict: "withdrawn" };
      if ("outcome" in reply) {
        if (reply.outcome.denied === undefined) return { verdict: "made", outcome: reply.outcome };
        return { verdict: "deny", why: reply.outcome.output, by: "user" };
      }
      if (reply.value) return { verdict: "allow", use: reply.use };
      if (!(await reply.use.claim())) continue;
      const why = `The user did not approve tool '${call.name}'.`;
      await reply.use.spend({ output: why, isError: true, denied: true });
      this.approved.keep(reply.use);
      return { verdict: "deny", why, by: "user" };
    }
  }

  #useConsent(call: Call): Consent | undefined {
    const key = consentKey(call);
    const [first, ...others] = this.#consents.get(key) ?? [];
    if (others.length > 0) this.#consents.set(key, others);
    else this.#consents.delete(key);
    return first;
  }

  #approvalOf(call: Call): Question<boolean> {
    return this.#questionAbout("user_approval", call, (answer) => {
      const approved = approvalIn(answer) === true;
      return { value: approved, response: { approved } };
    });
  }

  #questionAbout<Value>(
    kind: InteractionKind,
    call: Call,
    read: (answer: UserAnswer) => { readonly value: Value; readonly response: InteractionPayload },
  ): Question<Value> {
    const { origin, name, input } = call;
    return { kind, origin, name, input, call, details: this.tools.details(call), read };
  }
}

/** Whether its answer, if there is one, is this call's now. */
async function claimed({ use }: { readonly use?: AnswerUse | undefined }): Promise<boolean> {
  return use === undefined || (await use.claim());
}

function outcomeOf({ output, isError }: UserAnswer): KnownOutcome {
  return { output: typeof output === "string" ? output : canonicalJson(output), isError };
}

function consentKey({ origin, name, input }: CallSubject): string {
  return canonicalJson([origin, name, comparable(input)]);
}
