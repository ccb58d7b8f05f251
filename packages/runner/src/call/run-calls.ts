import { asPluginError } from "@ambit/core";
import type { ToolSpec } from "@ambit/core/contract";
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
import { Deadlines, Pause } from "../lifetime/deadlines.js";
import { aborted, LinkedAbort, type OwnedScope } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { tokens } from "../tokens.js";
import { Ask, Elicitation } from "./ask/ask.js";
import { Gatekeeper } from "./gatekeeper.js";
import { CallPermissions } from "./permission/permissions.js";
import { ApprovedCalls, type TurnEnding } from "./reports/approved-calls.js";
import { CallEvents } from "./reports/call-events.js";
import { Calls } from "./reports/calls.js";
import { unusableArguments } from "./tools/arguments/checker.js";
import { type MadeCall, RunTools, tooManyCalls } from "./tools/run-tools.js";
import type { AnswerUse, InteractionKind, KnownOutcome } from "./values/answer.js";
import { type Call, type CallSubject, subjectOf } from "./values/call.js";
import { unsettledTexts } from "./values/unsettled.js";

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
